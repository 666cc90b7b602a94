package forkssh_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are those that reach s and nothing of the user's own.
func options(t *testing.T, s *sshtest.Sshd, known string) forkssh.Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	return forkssh.Options{Flags: conf.Flags{
		Config: "none", Identities: []string{s.Key}, Port: uint16(s.Port), User: s.User,
		Settings: []string{"IdentityAgent=none", "UserKnownHostsFile=" + file, "GlobalKnownHostsFile=none"},
	}}
}

func known(s *sshtest.Sshd) string { return "* " + sshtest.AuthorizedLine(s.HostKey) }

func run(t *testing.T, p fanout.Params, o forkssh.Options, h host.Host, cmd fleet.Command, c *sshtest.Told) fleet.Result {
	t.Helper()
	return runOn(t, p, o, &route.Route{}, h, cmd, c)
}

// leading is the route to a host under a configuration file, where new keys may be accepted.
func leading(t *testing.T, file, jump string, acceptNew bool) *route.Route {
	t.Helper()
	r, err := route.New(t.Context(), route.Params{Flags: conf.Flags{Config: file, Jump: jump}, AcceptNew: acceptNew, Getenv: os.Getenv, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.Route(t.Context(), host.Host{Name: "127.0.3.8"})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// routed is an Engine with one Route for all hosts.
type routed struct {
	*forkssh.Engine
	way *route.Route
}

func (r routed) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	return r.Run(ctx, h, r.way, nil, cmd, a)
}

func runOn(t *testing.T, p fanout.Params, o forkssh.Options, way *route.Route, h host.Host, cmd fleet.Command, c *sshtest.Told) fleet.Result {
	t.Helper()
	if _, err := fanout.Run(context.Background(), p, []host.Host{h}, cmd, routed{forkssh.New(o), way}, c); err != nil {
		t.Error(err)
	}
	return c.Results()[0]
}

func TestOutcomes(t *testing.T) {
	s := sshtest.StartSshd(t)
	closed := (&sshtest.Server{Raw: func(net.Conn) {}}).Start(t)
	web := (&sshtest.Server{Raw: func(c net.Conn) { c.Write([]byte("HTTP/1.1 400 no\r\n\r\n")); c.Read(make([]byte, 99)) }}).Start(t)
	tests := []struct {
		name  string
		sshd  *sshtest.Sshd
		host  string
		port  int
		known string
		line  string
		new   bool
		want  fleet.Result
	}{
		{name: "accept-new", new: true, known: "\n", line: "true", want: fleet.Result{Phase: fleet.PhaseExit, Outcome: fleet.Outcome{Ran: fleet.RanYes}}},
		{name: "unknown key", known: "\n", line: "true", want: fleet.Result{Phase: fleet.PhaseHostkey, Outcome: fleet.Outcome{Class: fleet.HostKeyUnknown, Exit: -1}}},
		{name: "no such name", host: "no-such-host.invalid", line: "true", want: fleet.Result{Phase: fleet.PhaseDNS, Outcome: fleet.Outcome{Class: fleet.NameFailed, Exit: -1}}},
		{name: "refused", port: 1, line: "true", want: fleet.Result{Phase: fleet.PhaseConnect, Outcome: fleet.Outcome{Class: fleet.Refused, Exit: -1}}},
		{name: "turned away", port: closed.Port(), line: "true", want: fleet.Result{Phase: fleet.PhaseKex, Outcome: fleet.Outcome{Class: fleet.Throttled, Exit: -1}}},
		{name: "web server", port: web.Port(), line: "true", want: fleet.Result{Phase: fleet.PhaseKex, Outcome: fleet.Outcome{Class: fleet.NotSSH, Exit: -1}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.sshd == nil {
				test.sshd = s
			}
			if test.known == "" {
				test.known = known(test.sshd)
			}
			o := options(t, test.sshd, test.known)
			h := host.Host{Name: "127.0.3.1"}
			if test.host != "" {
				h.Name = test.host
			}
			if test.port != 0 {
				o.Flags.Port = uint16(test.port)
			}
			r := runOn(t, fanout.Params{RetryFor: time.Millisecond}, o, leading(t, "none", "", test.new), h, fleet.Command{Line: test.line}, &sshtest.Told{})
			if r.Ran != test.want.Ran || r.Class != test.want.Class || r.Phase != test.want.Phase || r.Exit != test.want.Exit || r.Signal != test.want.Signal {
				t.Errorf("got %+v\nwant %+v", r, test.want)
			}
			if r.Class != fleet.NoFailure && r.Err == "" {
				t.Error("no reason is given")
			}
		})
	}
}

// TestNoLogIsNoProof: a command or subsystem that has run, and of which nothing more is heard, is
// never said not to have run, whatever the user lets ssh say.
func TestNoLogIsNoProof(t *testing.T) {
	s := sshtest.StartSshd(t, "Subsystem mad kill -9 $PPID")
	for _, further := range [][]string{nil, {"-q"}, {"-o", "LogLevel=QUIET"}, {"-E", filepath.Join(t.TempDir(), "log")}} {
		for what, cmd := range map[string]fleet.Command{
			"command":   {Line: "kill -9 $PPID"},
			"subsystem": {Line: "mad", Dialogue: func(_ context.Context, _ host.Host, c fleet.Channel) error { _, err := io.ReadAll(c); return err }},
		} {
			o := options(t, s, known(s))
			o.Args = append(o.Args, further...)
			if r := run(t, fanout.Params{}, o, host.Host{Name: "127.0.3.2"}, cmd, &sshtest.Told{}); r.Ran == fleet.RanNo || r.Attempts != 1 {
				t.Errorf("%s with %v: %+v", what, further, r)
			}
		}
	}
}

// TestBrokenProxy: a ProxyCommand that cannot work is no busy server.
func TestBrokenProxy(t *testing.T) {
	s := sshtest.StartSshd(t)
	o := options(t, s, known(s))
	o.Args = append([]string{"-o", "ProxyCommand=no-such-program %h"}, o.Args...)
	r := run(t, fanout.Params{RetryFor: time.Minute}, o, host.Host{Name: "127.0.3.5"}, fleet.Command{Line: "true"}, &sshtest.Told{})
	if r.Attempts != 1 || r.Class != fleet.Lost || r.Ran != fleet.RanNo || !strings.Contains(r.Hint, "ProxyCommand") {
		t.Errorf("got %+v", r)
	}
}

// TestNothingIsLeft: what ssh has started is gone when ssh has ended by itself, whether it
// succeeded or not, and even if it ignores every signal but KILL.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	pids := filepath.Join(t.TempDir(), "pids")
	stubborn := `trap '' HUP TERM; echo $$ >>` + pids + `; sleep 600 </dev/null >/dev/null 2>&1 & echo $! >>` + pids + `; `
	for _, test := range []struct {
		name, then string
		ran        fleet.Ran
	}{
		{"silent proxy", "wait; sleep 600", fleet.RanNo},
		{"proxy that works", fmt.Sprintf("exec ssh -F none -i %s -o IdentityAgent=none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -p %d -l %s -W %%h:%%p 127.0.3.9", s.Key, s.Port, s.User), fleet.RanYes},
	} {
		t.Run(test.name, func(t *testing.T) {
			waittest.InTime(t, time.Second, func(limit time.Duration) error {
				if test.ran == fleet.RanYes {
					limit = time.Hour
				}
				o := options(t, s, known(s))
				// Tokens reach the script as arguments.
				proxy := script(t, strings.NewReplacer("%h", "$1", "%p", "$2").Replace(stubborn+test.then)) + " %h %p"
				o.Args = append([]string{"-o", "ProxyCommand=" + proxy, "-o", fmt.Sprintf("ConnectTimeout=%d", limit/time.Second)}, o.Args...)
				r := run(t, fanout.Params{RetryFor: time.Millisecond}, o, host.Host{Name: "127.0.3.8"}, fleet.Command{Line: "true"}, &sshtest.Told{})
				if r.Ran != test.ran {
					t.Errorf("got %+v", r)
				}
				text, err := os.ReadFile(pids)
				for _, word := range strings.Fields(string(text)) {
					pid, _ := strconv.Atoi(word)
					waittest.Gone(t, pid)
				}
				if len(text) == 0 {
					return fmt.Errorf("the proxy did not start: %w", err)
				}
				return os.Remove(pids)
			})
		})
	}
}

// TestMasterStays: a ControlPersist master and the proxy that carries it are the user's, and serve
// the next ssh.
func TestMasterStays(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	socket := filepath.Join(t.TempDir(), "s")
	o := options(t, s, known(s))
	proxy := fmt.Sprintf("ssh -F none -i %s -o IdentityAgent=none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -p %%p -l %s -W %%h:%%p 127.0.3.9", s.Key, s.User)
	o.Args = append([]string{"-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", "ControlPath=" + socket, "-o", "ProxyCommand=" + proxy}, o.Args...)
	r := run(t, fanout.Params{}, o, host.Host{Name: "127.0.3.8"}, fleet.Command{Line: "true"}, &sshtest.Told{})
	if r.Status() != fleet.OK {
		t.Errorf("got %+v", r)
	}
	time.Sleep(time.Second) // longer than anything is given to end
	out, err := exec.Command("ssh", "-F", "none", "-o", "ControlPath="+socket, "127.0.3.8", "echo through the master").CombinedOutput()
	if err != nil || string(out) != "through the master\n" {
		t.Errorf("the master is gone: %v %s", err, out)
	}
	exec.Command("ssh", "-F", "none", "-o", "ControlPath="+socket, "-O", "exit", "127.0.3.8").Run()
}

// TestPlain runs an arbitrary argument list, as the mpssh.py mode does.
func TestPlain(t *testing.T) {
	argv := func(h host.Host, command string) []string { return []string{"-o x", "me@" + h.Name, command} }
	tests := []struct {
		binary string
		out    string
		exit   int
		signal string
		errno  bool
	}{
		{binary: "/bin/echo", out: "-o x me@127.0.3.4 uptime\n"},
		{binary: "/", exit: -1, errno: true},
		{binary: script(t, "exit 255"), exit: 255},
		{binary: script(t, "kill -9 $$"), exit: -1, signal: "KILL"},
	}
	for _, test := range tests {
		var c sshtest.Told
		r := run(t, fanout.Params{}, forkssh.Options{Binary: test.binary, Argv: argv}, host.Host{Name: "127.0.3.4"}, fleet.Command{Line: "uptime"}, &c)
		if c.Text(fleet.Stdout) != test.out || r.Exit != test.exit || r.Signal != test.signal || (r.Cause != nil) != test.errno {
			t.Errorf("%s: %q, %+v", test.binary, c.Text(fleet.Stdout), r)
		}
	}
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHostileName must not reach ssh's option parser.
func TestHostileName(t *testing.T) {
	r := run(t, fanout.Params{}, forkssh.Options{Binary: "/bin/echo"}, host.Host{Name: "-oProxyCommand=id"}, fleet.Command{Line: "x"}, &sshtest.Told{})
	if r.Class != fleet.Local || r.OutBytes != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestStderrOfTheWay: what a jump host's sshd or the program that carries the connection writes is
// not the command's; all of what the command writes is.
func TestStderrOfTheWay(t *testing.T) {
	t.Parallel()
	banner := filepath.Join(t.TempDir(), "banner")
	if err := os.WriteFile(banner, []byte("BANNER OF THE WAY\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := sshtest.StartSshd(t, "Banner "+banner)
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf("Host *\nUserKnownHostsFile %s\nIdentityFile %s\nPort %d\nUser %s\nIdentityAgent none\n",
		filepath.Join(t.TempDir(), "known_hosts"), s.Key, s.Port, s.User)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	o := forkssh.Options{Flags: conf.Flags{Config: file}}
	jumps, direct := leading(t, file, "127.0.3.9", true), leading(t, file, "", true)
	noisy := o
	noisy.Flags.Settings = []string{"ProxyCommand=" + script(t, `echo the way >&2; exec ssh -F `+file+` -o StrictHostKeyChecking=no -W "$1:$2" 127.0.3.9`) + " %h %p"}
	for name, test := range map[string]struct {
		o   forkssh.Options
		way *route.Route
	}{"jump host": {o, jumps}, "proxy": {noisy, direct}, "banner": {o, direct}} {
		t.Run(name, func(t *testing.T) {
			// Where a program and the command write before either is read, all counts as the
			// command's.
			waittest.Until(t, "what was said before the command is told apart", func() bool {
				var c sshtest.Told
				r := runOn(t, fanout.Params{}, test.o, test.way, host.Host{Name: "127.0.3.8"}, fleet.Command{Line: "echo warn >&2; echo more >&2; exit 3"}, &c)
				said := c.Text(fleet.Stderr)
				if r.Exit != 3 || !strings.HasSuffix(said, "warn\nmore\n") {
					t.Fatalf("%+v: stderr %q", r, said)
				}
				return said == "warn\nmore\n"
			})
		})
	}
}

// TestGreetingIsNoReason: what a jump host greets with is not why the connection behind it was
// closed; what its ssh says is.
func TestGreetingIsNoReason(t *testing.T) {
	t.Parallel()
	banner := filepath.Join(t.TempDir(), "banner")
	if err := os.WriteFile(banner, []byte("BANNER OF THE WAY\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := sshtest.StartSshd(t, "Banner "+banner)
	hangs := (&sshtest.Server{Raw: func(net.Conn) {}}).Start(t)
	file := filepath.Join(t.TempDir(), "config")
	config := fmt.Sprintf("Host 127.0.3.8\nPort %d\nHost 127.0.3.7\nPort 1\nHost *\nUserKnownHostsFile %s\nIdentityFile %s\nPort %d\nUser %s\nIdentityAgent none\nHostName 127.0.0.1\n",
		hangs.Port(), filepath.Join(t.TempDir(), "known_hosts"), s.Key, s.Port, s.User)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	jumps := leading(t, file, "127.0.3.9", true)
	for name, want := range map[string]struct {
		class fleet.Class
		says  string
	}{"127.0.3.8": {fleet.Throttled, "Connection closed by"}, "127.0.3.7": {fleet.Refused, "stdio forwarding failed"}} {
		r := runOn(t, fanout.Params{RetryFor: time.Millisecond}, forkssh.Options{Flags: conf.Flags{Config: file}}, jumps, host.Host{Name: name}, fleet.Command{Line: "true"}, &sshtest.Told{})
		if r.Class != want.class || !strings.Contains(r.Err, want.says) || strings.Contains(r.Err, "BANNER") {
			t.Errorf("%s: class %v, %q; want %v, %q", name, r.Class, r.Err, want.class, want.says)
		}
	}
}

// TestConnectTimeout: all up to the start of the command is bounded, and what was not reached is
// said.
func TestConnectTimeout(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := sshtest.StartSshd(t)
	silent := (&sshtest.Server{Raw: func(c net.Conn) { io.Copy(io.Discard, c) }}).Start(t)
	slowLogin := sshtest.StartSshd(t, "AuthorizedKeysFile none", "AuthorizedKeysCommand /bin/sleep 300", "AuthorizedKeysCommandUser "+me(t))
	for _, test := range []struct {
		name  string
		sshd  *sshtest.Sshd
		port  int
		text  string
		proxy string
	}{
		{name: "version line", sshd: s, port: silent.Port(), text: "timed out during banner exchange"},
		{name: "login", sshd: slowLogin, text: "timed out during login"},
		{name: "way", sshd: s, proxy: "sleep 300", text: "timed out during"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			waittest.InTime(t, time.Second, func(limit time.Duration) error {
				o := options(t, test.sshd, known(test.sshd))
				o.Args = append([]string{"-o", "ConnectTimeout=600"}, o.Args...)
				o.ConnectTimeout = limit
				if test.port != 0 {
					o.Flags.Port = uint16(test.port)
				}
				if test.proxy != "" {
					o.Args = append([]string{"-o", "ProxyCommand=" + test.proxy}, o.Args...)
				}
				r := run(t, fanout.Params{RetryFor: time.Millisecond}, o, host.Host{Name: "127.0.3.6"}, fleet.Command{Line: "true"}, &sshtest.Told{})
				if r.Class != fleet.TimedOut || r.Ran != fleet.RanNo || !strings.Contains(r.Err, test.text) {
					return fmt.Errorf("got %+v", r)
				}
				return nil
			})
		})
	}
}

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// TestWhatSSHSays: how far ssh had come decides what its last words mean, and what is to be done
// about them stands in one place for all engines.
func TestWhatSSHSays(t *testing.T) {
	const (
		connected = "debug1: Connecting to x [127.0.0.1] port 22.\ndebug1: Connection established.\n"
		sent      = connected + "debug1: SSH2_MSG_SERVICE_ACCEPT received\nAuthenticated to x ([127.0.0.1]:22) using publickey.\ndebug1: Sending command: true\n"
	)
	for said, want := range map[string]struct {
		class fleet.Class
		ran   fleet.Ran
		hint  string
	}{
		"ssh: connect to host x port 22: Connection timed out":                        {fleet.TimedOut, fleet.RanNo, openssh.TimedOut.Advice()},
		connected + "kex_exchange_identification: Connection closed by remote host":   {fleet.Throttled, fleet.RanNo, openssh.Throttled.Advice()},
		connected + "channel 0: open failed: unknown channel type: unsupported":       {fleet.Refused, fleet.RanNo, ""},
		sent + "channel 0: open failed: unknown channel type: unsupported":            {fleet.ExecRefused, fleet.RanNo, openssh.SessionRefused.Advice()},
		sent + "Timeout, server x not responding.":                                    {fleet.Lost, fleet.RanUnknown, ""},
		connected + "Received disconnect from x: 2: Too many authentication failures": {fleet.AuthFailed, fleet.RanNo, openssh.TooManyKeys.Advice()},
	} {
		ssh := script(t, `while [ "$1" != -E ]; do shift; done; cat >>"$2" <<'END'`+"\n"+said+"\nEND\nexit 255")
		r := run(t, fanout.Params{RetryFor: 1}, forkssh.Options{Binary: ssh}, host.Host{Name: "x"}, fleet.Command{Line: "true"}, &sshtest.Told{})
		if r.Class != want.class || r.Ran != want.ran || r.Hint != want.hint {
			t.Errorf("%q: %v, ran %v, hint %q", said, r.Class, r.Ran, r.Hint)
		}
	}
}
