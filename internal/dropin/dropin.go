// Package dropin holds the drop-in modes of run: the command line, output and exit codes of another
// program, on our engines. pySSH is mpssh.py, mpssh the C program mpssh, pssh the programs of the
// package pssh, pdsh and dshbak those of pdsh, clush ClusterShell's; each is a program for one
// frame, program.main. Each promises everything that its users' scripts rely on; where a rule is
// deliberately safer than the original's, the type says so.
//
// Env brings the engine for hosts; only user's programs are started here.
package dropin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
)

// Env is the environment of a mode.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdoutTTY and StderrTTY say that the writer is a terminal: colors are used, and remote text
	// is cleaned, even if the original did not.
	StdoutTTY, StderrTTY bool
	User                 string // the login name of whoever runs us
	Home                 string // their home directory
	Getenv               func(string) string
	Hostname             string // of this machine, without its domain
	// Engine makes the engine for a run on these hosts, and the function that ends it. sshArgs are
	// options for ssh(1), each as one argument, such as "-o ConnectTimeout=3".
	Engine func(sshArgs []string, hosts []host.Host) (fleet.Executor, func() error, error)
	// AskPass lets Engine ask for the password of the hosts, or of a key.
	AskPass func()
	// SSH makes an engine that starts ssh, or a program that starts ssh, with exactly the arguments
	// of argv, and the function that ends it: for output that only ssh itself produces. It is not
	// started for hosts that Engine would refuse with sshArgs.
	SSH func(program string, sshArgs []string, argv func(h host.Host, command string) []string) (fleet.Executor, func() error, error)
}

// toTerminal reports whether a stream goes to a terminal.
func (e Env) toTerminal(s fleet.Stream) bool {
	if s == fleet.Stderr {
		return e.StderrTTY
	}
	return e.StdoutTTY
}

// safe returns text of hosts for a stream: cleaned for a terminal, otherwise unchanged.
func (e Env) safe(s fleet.Stream, text []byte) []byte {
	if e.toTerminal(s) {
		return termsafe.Text(text)
	}
	return text
}

// flush writes the buffer of a stream with one Write, and empties it.
func (e Env) flush(s fleet.Stream, buf *[]byte) error {
	if len(*buf) == 0 {
		return nil
	}
	_, err := []io.Writer{e.Stdout, e.Stderr}[s].Write(*buf)
	*buf = (*buf)[:0]
	return err
}

// Exit codes of the modes; both originals have few.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2

	exitInterrupted = 130 // as of a program that SIGINT ends
)

// work is a command on an engine.
type work struct {
	command fleet.Command
	engine  fleet.Executor
	stop    func() error
	program bool     // engine runs a program whose end is the host's
	options []string // of ssh
}

// engine returns ours, or the ssh program if options make it report something.
func (e Env) engine(options []string, hosts []host.Host) (w work, err error) {
	if w.options = options; !asItIs(options) {
		w.engine, w.stop, err = e.Engine(options, hosts)
		return w, err
	}
	argv := func(h host.Host, command string) []string {
		return append(append(careful(options), sshDestination(h)...), command)
	}
	w.engine, w.stop, err = e.SSH("ssh", options, argv)
	w.program = true
	return w, err
}

// nothing ends an engine without resources.
func nothing() error { return nil }

// run carries out the command, and ends the engine.
func (w work) run(ctx context.Context, params fanout.Params, hosts []host.Host, sink fleet.Sink) (fleet.Summary, error) {
	summary, err := fanout.Run(ctx, params, hosts, w.command, w.engine, sink)
	return summary, errors.Join(err, w.stop(), summary.Lost)
}

// verdict is the end of a host in the terms of ssh(1) and wait(2).
type verdict struct {
	code    int           // exit code; 255 is ssh's own failure
	signal  int           // number of the signal that ended the program, 0 for none
	exec    syscall.Errno // the program could not be started
	message []string      // lines that ssh would have written to standard error
}

// judge translates a result. A remote command that a signal ended becomes 255 without a message, as
// with ssh, which ignores exit-signal messages.
func judge(r *fleet.Result, program bool) verdict {
	switch {
	case program && r.Signal != "":
		return verdict{signal: signalNumber(r.Signal)}
	case program && r.Class == fleet.Local:
		return startFailure(r)
	case r.Class == fleet.NoFailure && r.Signal != "":
		return verdict{code: 255}
	case r.Class == fleet.NoFailure:
		return verdict{code: r.Exit}
	}
	message := []string{sshMessage(r)}
	if hostKey[r.Class] && !strings.HasSuffix(message[0], hostKeyFailed) {
		message = append(message, hostKeyFailed) // scripts look for it
	}
	return verdict{code: 255, message: message}
}

const hostKeyFailed = "Host key verification failed."

// hostKey lists the classes after which ssh reports that host key verification failed.
var hostKey = map[fleet.Class]bool{fleet.HostKeyUnknown: true, fleet.HostKeyChanged: true, fleet.HostKeyRevoked: true}

func signalNumber(name string) int {
	if n := unix.SignalNum("SIG" + name); n != 0 {
		return int(n)
	}
	var n int
	fmt.Sscan(name, &n) // a number where the signal has no name here
	return n
}

// startFailure finds the error number of execve(2). Go checks beforehand and words some of them
// differently.
func startFailure(r *fleet.Result) verdict {
	var errno syscall.Errno
	switch {
	case errors.Is(r.Cause, syscall.EISDIR), errors.Is(r.Cause, fs.ErrPermission):
		return verdict{exec: syscall.EACCES}
	case errors.Is(r.Cause, exec.ErrNotFound):
		return verdict{exec: syscall.ENOENT}
	case errors.As(r.Cause, &errno):
		return verdict{exec: errno}
	}
	return verdict{code: 255, message: []string{r.Err}}
}

// sshMessage returns ssh's message for the same failure. ssh puts its name only before messages
// about names and connections.
func sshMessage(r *fleet.Result) string {
	text := termsafe.Line(r.Err)
	if r.Class == fleet.OutputLimit {
		text += "; output " + r.Incomplete
	}
	for _, start := range []string{"connect to host ", "Could not resolve hostname "} {
		if strings.HasPrefix(text, start) {
			return "ssh: " + text
		}
	}
	return text
}

// paced keeps the starts of hosts at least delay apart.
type paced struct {
	fleet.Executor
	delay time.Duration
	turns sched.Turns
}

// Execute waits for the host's turn.
func (p *paced) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	p.turns.Wait(ctx, p.delay)
	return p.Executor.Execute(ctx, h, cmd, a)
}

func withDelay(ex fleet.Executor, ms int) fleet.Executor {
	if ms <= 0 {
		return ex
	}
	return &paced{Executor: ex, delay: time.Duration(ms) * time.Millisecond}
}
