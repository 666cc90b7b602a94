package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshconf"
	"sshpace/internal/ssh/wire"
	"sshpace/internal/sys/proc"
)

// sshConfig is the user's configuration, loaded under the flags of a command.
type sshConfig struct {
	config *sshconf.Config
	asker  *sshconf.Asker
}

// loadSSHConfig reads the files that ssh would read. Without an installed ssh
// it still works, but for what only ssh can tell.
func loadSSHConfig(ctx context.Context, sys System, flags connectionFlags, command string) (*sshConfig, error) {
	r, err := newRouter(ctx, sys, flags, command)
	if err != nil {
		return nil, err
	}
	return r.hosts.full()
}

// params are the flags in the terms of package sshconf.
func (c connectionFlags) params() sshconf.Params {
	p := sshconf.Params{File: c.config, Options: c.settings, Port: int(c.port), User: c.user, Jump: c.jump, Identities: c.identities}
	switch {
	case c.ipv6:
		p.AddressFamily = "inet6"
	case c.ipv4:
		p.AddressFamily = "inet"
	}
	return p
}

// isConfigError tells whether err is a mistake in files, options or flags.
func isConfigError(err error) bool {
	_, mistake := errors.AsType[*sshconf.ConfigError](err)
	_, refused := errors.AsType[*sshconf.RefusedError](err)
	return mistake || refused || isJumpsError(err)
}

// configError says what to do about a mistake in the configuration.
func configError(err error) error {
	if _, ok := errors.AsType[*sshconf.RefusedError](err); ok {
		return &Error{Err: err, Hint: "correct that option or line; ssh -G HOST shows the same", Code: ExitUsage}
	}
	if jumps, ok := errors.AsType[*jumpsError](err); ok {
		return &Error{Err: err, Hint: jumps.Hint(), Code: ExitUsage}
	}
	mistake, ok := errors.AsType[*sshconf.ConfigError](err)
	if !ok {
		return err
	}
	hint := "correct that line; ssh itself refuses the file, too"
	if mistake.Origin.Source == sshconf.FromFlag {
		hint = "correct the flag; its letter and meaning are those of ssh"
	}
	return &Error{Err: err, Hint: hint, Code: ExitUsage}
}

// sshSystem is what ssh takes from its surroundings.
func sshSystem(sys System) (sshconf.System, error) {
	me, err := user.Current()
	if err != nil {
		return sshconf.System{}, fmt.Errorf("look up the local user: %w", err)
	}
	uid, err := strconv.Atoi(me.Uid)
	if err != nil {
		return sshconf.System{}, fmt.Errorf("look up the local user: %w", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return sshconf.System{}, err
	}
	getenv := func(name string) (string, bool) {
		value := sys.Getenv(name)
		_, set := os.LookupEnv(name)
		return value, set || value != ""
	}
	return sshconf.System{Home: me.HomeDir, User: me.Username, UID: uid, Hostname: hostname, Getenv: getenv,
		Exec: func(ctx context.Context, command string) (bool, error) { return matchExec(ctx, sys, command) },
		HomeOf: func(name string) (string, bool) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", false
			}
			return u.HomeDir, true
		},
		Canonical: func(ctx context.Context, name string) (string, bool) {
			canonical, err := net.DefaultResolver.LookupCNAME(ctx, name)
			return canonical, err == nil
		},
		Addresses: interfaceAddresses,
	}, nil
}

// matchExec runs the command of a Match exec as ssh does: in the user's shell,
// with neither input nor output.
func matchExec(ctx context.Context, sys System, command string) (bool, error) {
	shell := sys.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	cmd := exec.CommandContext(ctx, shell, "-c", command)
	stderr := &termsafe.Writer{W: sys.Stderr}
	defer stderr.Close()
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second // for what the command leaves running behind it
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return false, ctx.Err()
	}
	return err == nil, err
}

func interfaceAddresses() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var addresses []netip.Addr
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			addresses = append(addresses, prefix.Addr())
		}
	}
	return addresses
}

// sshRunner runs the installed ssh for its answers.
func sshRunner(path string) sshconf.Runner {
	return func(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		err = proc.Run(cmd)
		return out.Bytes(), errs.Bytes(), err
	}
}

// missingSSH is the runner where no ssh is installed.
func missingSSH(context.Context, ...string) (stdout, stderr []byte, err error) {
	return nil, nil, &openssh.NotFoundError{Name: "ssh"}
}

// nativeCapabilities are what the native engine of run can do.
func nativeCapabilities() sshconf.Capabilities {
	offer := wire.Offer()
	return sshconf.Capabilities{Ciphers: offer.Ciphers, MACs: offer.MACs, KexAlgorithms: offer.Kex,
		// The insecure ones are used only where a configuration names them.
		HostKeyAlgorithms: append(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys...)}
}
