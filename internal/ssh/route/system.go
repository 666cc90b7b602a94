package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/pubkey"
	"sshpace/internal/ssh/transport"
	"sshpace/internal/sys/proc"
)

// system returns the environment of ssh.
func (p Params) system() (conf.System, error) {
	me, err := user.Current()
	if err != nil {
		return conf.System{}, fmt.Errorf("look up the local user: %w", err)
	}
	uid, err := strconv.Atoi(me.Uid)
	if err != nil {
		return conf.System{}, fmt.Errorf("look up the local user: %w", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return conf.System{}, err
	}
	getenv := func(name string) (string, bool) {
		value := p.Getenv(name)
		_, set := os.LookupEnv(name)
		return value, set || value != ""
	}
	return conf.System{Home: me.HomeDir, User: me.Username, UID: uid, Hostname: hostname, Getenv: getenv,
		Exec: func(ctx context.Context, command string) (bool, error) { return p.matchExec(ctx, command) },
		HomeOf: func(name string) (string, bool) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", false
			}
			return u.HomeDir, true
		},
		Canonical: canonical,
		Addresses: interfaceAddresses,
	}, nil
}

// UserShell returns a command that runs a line of ssh_config in the user's shell, as ssh does.
func (p Params) UserShell(ctx context.Context, line string) *exec.Cmd {
	return exec.CommandContext(ctx, cmp.Or(p.Getenv("SHELL"), "/bin/sh"), "-c", line)
}

// CleanStderr returns the standard error of a command of ssh_config. The caller closes it.
func (p Params) CleanStderr() io.WriteCloser { return &termsafe.Writer{W: p.Stderr} }

// matchExec runs the command of a Match exec as ssh does: in the user's shell, with neither input
// nor output.
func (p Params) matchExec(ctx context.Context, command string) (bool, error) {
	cmd := p.UserShell(ctx, command)
	stderr := p.CleanStderr()
	defer stderr.Close()
	cmd.Stderr = stderr
	err := proc.RunTied(cmd)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return false, ctx.Err()
	}
	return err == nil, err
}

// interfaceAddresses returns the addresses of the interfaces that are up.
func interfaceAddresses() (addresses []netip.Addr) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range interfaces {
		list, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range list {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				addresses = append(addresses, prefix.Addr())
			}
		}
	}
	return addresses
}

// onceEach answers "Match exec", each command once per run.
func onceEach(run func(context.Context, string) (bool, error)) func(context.Context, string) (bool, error) {
	var mu sync.Mutex
	known := make(map[string]*sched.Together[bool])
	return func(ctx context.Context, command string) (bool, error) {
		mu.Lock()
		answer := known[command]
		if answer == nil {
			answer = &sched.Together[bool]{Find: func(ctx context.Context) (bool, error) { return run(ctx, command) }}
			known[command] = answer
		}
		mu.Unlock()
		return answer.Get(ctx)
	}
}

// installed asks the installed ssh, which is found at the first question.
type installed struct {
	itself     conf.Runner // about itself, see openssh.Program.Itself
	configured conf.Runner // about its resulting configuration
}

func installedSSH() installed {
	found := &sched.Together[openssh.Program]{Find: openssh.Installed}
	by := func(ask func(openssh.Program) conf.Runner) conf.Runner {
		return func(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
			program, err := found.Get(ctx)
			switch {
			case ctx.Err() != nil:
				return nil, nil, context.Cause(ctx)
			case err != nil:
				return missingSSH(ctx)
			}
			return ask(program)(ctx, args...)
		}
	}
	return installed{
		by(func(p openssh.Program) conf.Runner { return p.Itself }),
		by(func(p openssh.Program) conf.Runner { return p.Ask }),
	}
}

// missingSSH is the runner where no ssh is installed.
func missingSSH(context.Context, ...string) (stdout, stderr []byte, err error) {
	return nil, nil, &openssh.NotFoundError{Name: "ssh"}
}

// nativeCapabilities returns the algorithms of the native engine of run, the ones with the fewest
// round trips first.
func nativeCapabilities() conf.Capabilities {
	kexes, ciphers, macs := transport.Algorithms()
	return conf.Capabilities{Locally: true, Lists: map[conf.Keyword][]string{conf.Ciphers: ciphers, conf.MACs: macs, conf.KexAlgorithms: kexes,
		// The insecure ones are used only where a configuration or ssh itself names them.
		conf.HostKeyAlgorithms: append(pubkey.Algorithms(), ssh.InsecureAlgorithms().HostKeys...)}}
}

// secureLists returns the lists of algorithms to use where no ssh is installed.
func secureLists() map[conf.Keyword][]string {
	secure := ssh.SupportedAlgorithms()
	return map[conf.Keyword][]string{conf.KexAlgorithms: secure.KeyExchanges, conf.Ciphers: secure.Ciphers, conf.MACs: secure.MACs}
}
