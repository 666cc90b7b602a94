package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/sys/safedir"
)

// hubProgram is the program that knows hubs.
const hubProgram = "sshpace-hub"

// needHub continues as the program that knows hubs where this one does not. Nothing has happened
// before but that flags were read.
func (sys System) needHub() error {
	if sys.Hub != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	own, _ := os.Stat(self)
	inPath, _ := exec.LookPath(hubProgram)
	dir := filepath.Dir(self)
	for _, path := range []string{filepath.Join(dir, hubProgram), filepath.Join(dir, "../libexec/sshpace", hubProgram), inPath} {
		if info, err := os.Stat(path); err == nil && !os.SameFile(info, own) {
			return fmt.Errorf("%s: %w", path, syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ()))
		}
	}
	return withHint(errors.New("there is no "+hubProgram+", which knows hubs"), "it comes with sshpace: put it into "+dir+" or another directory of PATH")
}

// hubFlags say which hub a command uses.
type hubFlags struct{ hub, nats, creds, roots string }

func (f *hubFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.hub, "hub", "", "the hub: ssh://[USER@]HOST[:PORT], unix for that of this machine, a directory of one, or tls://HOST:PORT")
	flags.StringVar(&f.nats, "nats", "", "use a cluster of NATS instead, by its URL")
	flags.StringVar(&f.creds, "creds", "", "file of a credential, for --nats, and a hub at tls://")
	flags.StringVar(&f.roots, "tls-ca", "", "file of the certificates that vouch for the hub's (default those of the system)")
}

// given reports whether there is a hub.
func (f *hubFlags) given() bool { return f.hub != "" || f.nats != "" }

// bus connects to the hub, which has to be there. That it is away later, and back, is reported on
// standard error.
func (f *hubFlags) bus(ctx context.Context, sys System, by connectionFlags, r job.Role) (job.Bus, error) {
	if err := sys.needHub(); err != nil {
		return nil, err
	}
	a, err := f.address(sys, by, r)
	if err != nil {
		return nil, err
	}
	a.Away = func(err error) {
		if err == nil {
			sys.screen().Notice("sshpace: the hub is back")
			return
		}
		sys.screen().Notice("sshpace: the hub is away, trying again: " + termsafe.Line(err.Error()))
	}
	bus, err := sys.Hub.Dial(ctx, a)
	if err != nil {
		return nil, unreachable(err)
	}
	return bus, nil
}

// unreachable gives an error of a connection its exit code, and a remedy.
func unreachable(err error) error {
	if e, is := errors.AsType[*Error](err); is && e.Code != 0 {
		return err
	}
	return &Error{Err: err, Code: ExitUnreachable, Hint: cmp.Or(hintOf(err), "is a hub there, and its certificate for that name? sshpace hub --status on its machine says more")}
}

// address returns where the hub is.
func (f *hubFlags) address(sys System, by connectionFlags, r job.Role) (a job.Address, err error) {
	a = job.Address{Role: r, Credential: f.creds, Roots: f.roots}
	scheme, _, isURL := strings.Cut(f.hub, "://")
	switch {
	case f.hub != "" && f.nats != "":
		return a, usageError("give one of them", "--hub and --nats exclude each other")
	case (f.nats != "" || scheme == "tls" || scheme == "nats") && f.creds == "":
		return a, usageError("sshpace hub --credential "+string(r)+" makes one, on the hub's machine", "there is no credential for %s: --creds is missing", cmp.Or(f.nats, f.hub))
	case f.nats != "":
		a.URL, a.Cluster = f.nats, true
	case scheme == "tls" || scheme == "nats":
		a.URL = f.hub
	case scheme == "ssh" && isURL:
		h, err := host.Parse(f.hub)
		if err != nil {
			return a, err
		}
		a.Open = through(sys, by, h, r)
	case f.hub == "unix":
		a.Dir = hubDir(sys)
	case !isURL:
		a.Dir = f.hub
	default:
		return a, usageError("such as ssh://HOST, unix or tls://HOST:PORT", "--hub %s: unknown kind of address", f.hub)
	}
	return a, nil
}

// hubDir returns the directory of the user's own hub.
func hubDir(sys System) string {
	if dir := safedir.State(sys.Getenv); dir != "" {
		return filepath.Join(dir, "hub")
	}
	return ""
}

// through returns how a connection to the hub on another machine is made: its standard input and
// output are those of hub --connect there.
func through(sys System, by connectionFlags, h host.Host, r job.Role) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		e, err := reach.New(ctx, reach.Params{Params: by.params(sys)})
		if err != nil {
			return nil, err
		}
		if err := e.Check(ctx, []host.Host{h}); err != nil {
			e.Close()
			return nil, err
		}
		opened, ended := make(chan net.Conn, 1), &ending{done: make(chan struct{})}
		life, end := context.WithCancel(context.WithoutCancel(ctx))
		talk := func(ctx context.Context, _ host.Host, ch fleet.Channel) error {
			here, there := net.Pipe()
			opened <- here
			defer context.AfterFunc(ctx, func() { there.Close() })()
			go func() {
				_, _ = io.Copy(ch, there)
				ch.Close()
			}()
			_, err := io.Copy(there, ch)
			there.Close()
			return err
		}
		go func() {
			defer end()
			defer e.Close()
			command := fleet.Command{Line: "sshpace hub --connect " + string(r), Program: true, Dialogue: talk}
			_, _ = fanout.Run(life, fanout.Params{RetryFor: -time.Second}, []host.Host{h}, command, e, ended)
			close(ended.done)
		}()
		select {
		case conn := <-opened:
			return &dialogue{conn, ended}, nil
		case <-ended.done:
			return nil, ended.why()
		case <-ctx.Done():
			end()
			return nil, context.Cause(ctx)
		}
	}
}

// ending keeps how a connection to a hub's machine ended.
type ending struct {
	fleet.Nothing
	done   chan struct{}
	stderr bytes.Buffer
	result fleet.Result
}

// Output keeps the last thing that the other machine says.
func (e *ending) Output(o fleet.Event) error {
	if e.stderr.Len() < 4<<10 {
		e.stderr.Write(o.Data)
	}
	return nil
}

// Done keeps the result.
func (e *ending) Done(r fleet.Result, _ fleet.Summary) error {
	e.result = r
	return nil
}

// why returns the reason of the end.
func (e *ending) why() error {
	said, _, _ := strings.Cut(termsafe.Line(strings.TrimSpace(e.stderr.String())), "\n")
	text := cmp.Or(said, e.result.Err, "the connection was ended")
	hint := e.result.Hint
	if e.result.Ran == fleet.RanYes {
		hint = "sshpace and a hub have to be there; where sshpace is not in PATH, authorized_keys can name it"
	}
	return withHint(fmt.Errorf("%s: %s", e.result.Host, text), hint)
}

// dialogue is a connection to a hub's machine whose end has a reason.
type dialogue struct {
	net.Conn
	ended *ending
}

// Read reads; at the end the error is its reason.
func (d *dialogue) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if err == nil || !errors.Is(err, io.EOF) {
		return n, err
	}
	select {
	case <-d.ended.done:
		err = d.ended.why()
	case <-time.After(time.Second):
	}
	return n, err
}
