// Package forkssh is the openssh engine of run: one ssh process per host, for everything that only
// ssh can do (GSSAPI, PKCS#11, FIDO keys, any ProxyCommand) and for people who want exactly their
// ssh.
//
// It satisfies fleet.Executor. ssh is started without a shell, in its own process group, never with
// our standard input. Its own messages are separated from the remote command's stderr (ssh -E), so
// that the phase reached and whether the command ran are known, not guessed from 255.
package forkssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/session"
	"sshpace/internal/sys/proc"
)

// Options of an Engine.
type Options struct {
	Binary string // "" = ssh on PATH
	// Connection holds the user's flags, and Args further ones; they win over ours, but not over
	// those about host keys.
	Flags conf.Flags
	Args  []string
	// ConnectTimeout bounds everything up to the start of the command. ssh itself gets it in whole
	// seconds, at least 1, and counts less; 0 leaves all to the configuration.
	ConnectTimeout time.Duration
	// Master returns where a master of a jump host may listen, see route.Router; nil: ssh alone
	// knows.
	Master func(jump *conf.Resolved) string
	// Argv, when set, makes the whole argument list after the binary, for a compatible mode. Then
	// only output and exit code are known.
	Argv func(h host.Host, command string) []string
}

// Engine forks ssh.
type Engine struct{ opts Options }

var _ fleet.Executor = (*Engine)(nil)

// New makes an Engine. It holds nothing that needs closing.
func New(o Options) *Engine {
	if o.Binary == "" {
		o.Binary = "ssh"
	}
	return &Engine{opts: o}
}

// FDs counts both ends of stdin, stdout, stderr and the two logs, and the handle of the process:
// all files that are open while a process is being started.
func (e *Engine) FDs() int { return 11 }

const (
	engineName = "openssh"
	// termGrace is between SIGTERM and SIGKILL to ssh.
	termGrace = time.Second
	// strayGrace is how long a pipe may stay open after ssh has ended; a ControlPersist master
	// keeps its client's stderr for ever.
	strayGrace = 500 * time.Millisecond
)

// Execute runs cmd on h; see fleet.Executor.
func (e *Engine) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	return e.Run(ctx, h, &route.Route{}, nil, cmd, a)
}

// Run runs cmd on a host whose route is known; options are further ones, which win over the user's.
// Options must have no -J if the route has jump hosts.
func (e *Engine) Run(ctx context.Context, h host.Host, via *route.Route, options []string, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	if err := h.Check(); err != nil {
		return local(fmt.Errorf("host: %w", err))
	}
	if err := a.Admit(ctx, h.String()); err != nil {
		return cancelled(ctx, fleet.RanNo)
	}
	if e.opts.Argv != nil {
		return e.plain(ctx, h, cmd, a)
	}
	a.Reached(fleet.PhaseDNS)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	log := newLog(a, via.Jumps, e.limit(end))
	logPath, hopsPath, closeLog, err := log.open()
	if err != nil {
		return local(err)
	}
	argv, env := via.SSHOptions(e.opts.Binary, e.jumpOptions(hopsPath))
	argv = append(argv, options...)
	for _, kv := range cmd.Env {
		name, _, _ := strings.Cut(kv, "=")
		argv, env = append(argv, "-o", "SendEnv="+name), append(env, kv)
	}
	terminal := "-T"
	if cmd.Terminal {
		terminal, env = "-tt", append(env, "TERM="+session.TerminalKind)
		cmd.Input = fleet.SpoolBytes([]byte(fleet.EndOfInput))
	}
	argv = append(argv, terminal)
	share := via.Share(ctx, e.opts.ConnectTimeout)
	to := streams{a, log.foreign}
	var c *exec.Cmd
	var how conversation
	if cmd.Dialogue != nil {
		if argv = append(argv, "-o", "PermitLocalCommand=no"); !cmd.Program {
			argv = append(argv, "-s")
		}
		argv = append(argv, e.argv(h, cmd.Line, logPath, share)...)
		c, how, err = e.converse(ctx, argv, env, cmd, log, to)
	} else {
		c, err = e.process(ctx, append(argv, e.argv(h, cmd.Line, logPath, share)...), env, cmd.Input, to)
	}
	closeLog()
	if err != nil {
		return local(err)
	}
	if !log.master { // whose connection may go through a process of the group
		proc.EndGroup(c.Process.Pid, strayGrace)
	}
	o := log.outcome(ctx, c.ProcessState)
	if cmd.Terminal && slices.ContainsFunc(log.messages, func(m string) bool { return strings.HasPrefix(m, "PTY allocation request failed") }) {
		o.Ran, o.Class, o.Err, o.Hint = fleet.RanUnknown, fleet.NoStatus, "the server gives no terminal, and ssh, which had sent the command already, did not wait for it", ""
	}
	return conversed(ctx, o, how)
}

// limit ends a start that takes too long, unless started is called before.
func (e *Engine) limit(end context.CancelCauseFunc) (started func()) {
	if e.opts.ConnectTimeout <= 0 {
		return func() {}
	}
	timer := time.AfterFunc(e.opts.ConnectTimeout, func() { end(fleet.ErrConnectTimeout) })
	return func() { timer.Stop() }
}

// argv returns the argument list after the binary. The first value of an option wins in ssh, so the
// user's come first, except for the log's; flags without a value are ours. share is how long ssh
// may wait for each address.
func (e *Engine) argv(h host.Host, command, logPath string, share time.Duration) []string {
	args := []string{"-a", "-x"}
	if logPath != "" {
		args = append(args, "-E", logPath, "-o", "LogLevel=DEBUG2")
	}
	args = append(args, e.opts.Flags.Options()...)
	args = append(args, e.opts.Args...)
	args = append(args, conf.Flags{Settings: strings.Split(h.Settings, "\n")}.Options()...)
	args = append(args, connectTimeout(share)...)
	args = append(args,
		"-o", "BatchMode=yes",
		"-o", "UpdateHostKeys=no", // many clients would rewrite one file at once
		"-o", "ClearAllForwardings=yes",
		"-o", "RemoteCommand=none", // the command given wins
		"-o", "ServerAliveInterval="+strconv.Itoa(int(fleet.AliveInterval/time.Second)),
	)
	args = append(args, conf.Flags{User: h.User, Port: h.Port}.Options()...)
	return append(args, "--", h.Destination(), command)
}

// connectTimeout returns a limit in whole seconds; none means as configured.
func connectTimeout(limit time.Duration) []string {
	if limit <= 0 {
		return nil
	}
	return []string{"-o", openssh.ConnectTimeout(limit)}
}

// jumpOptions returns the options of the ssh to a jump host, which uses a connection that is kept
// there. Its messages belong into a log of ours and not to the output of the host.
func (e *Engine) jumpOptions(logPath string) func(jump *conf.Resolved) []string {
	options := append(connectTimeout(e.opts.ConnectTimeout), conf.Flags{Config: e.opts.Flags.Config}.Options()...)
	if logPath != "" {
		options = append(options, "-E", logPath, "-o", "LogLevel=DEBUG1")
	}
	return func(jump *conf.Resolved) []string {
		if e.opts.Master == nil || jump.IsSet(conf.ControlPath) {
			return options
		}
		path := e.opts.Master(jump)
		if _, err := os.Stat(path); err != nil {
			return options
		}
		return slices.Concat(options, conf.Flags{Settings: []string{"ControlMaster=no", "ControlPath=" + conf.Quote(strings.ReplaceAll(path, "%", "%%"))}}.Options())
	}
}

// plain runs the command by an argument list of the caller's, in place of ssh.
func (e *Engine) plain(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	a.Reached(fleet.PhaseExec)
	c, err := e.process(ctx, e.opts.Argv(h, cmd.Line), nil, cmd.Input, streams{a, func([]byte) int { return 0 }})
	if err != nil {
		return local(err)
	}
	proc.EndGroup(c.Process.Pid, strayGrace)
	state := c.ProcessState
	a.Reached(fleet.PhaseExit)
	o := fleet.Outcome{Engine: engineName, Ran: fleet.RanYes, Exit: exitCode(state), Signal: signalOf(state)}
	if o.Exit == 255 || o.Exit < 0 {
		o.Ran = fleet.RanUnknown
	}
	if ctx.Err() != nil {
		c := cancelled(ctx, o.Ran)
		o.Class, o.Err = c.Class, c.Err
	}
	return o
}

// process runs the binary to its end. The error is one of starting it.
func (e *Engine) process(ctx context.Context, argv, env []string, input fleet.Input, to streams) (*exec.Cmd, error) {
	c := e.command(argv, env, to)
	c.Stdout = fleet.Writer{Attempt: to.attempt, Stream: fleet.Stdout}
	stopInput, started, err := feed(c, input)
	if err != nil {
		return nil, err
	}
	defer stopInput()
	if err := c.Start(); err != nil {
		started(false)
		return nil, err
	}
	started(true)
	return c, wait(ctx, c, to)
}

// wait waits for the end of a started command, and ends it when ctx ends. An error is one of
// waiting, not of the process itself.
func wait(ctx context.Context, c *exec.Cmd, to streams) error {
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() { kill(ctx, to.attempt.Abort(), c.Process.Pid, ended) })
	err := proc.Wait(c)
	close(ended)
	killer.Wait()
	if _, isExit := errors.AsType[*exec.ExitError](err); isExit || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// command returns the binary in its own process group, not started yet.
func (e *Engine) command(argv, env []string, to streams) *exec.Cmd {
	c := exec.Command(e.opts.Binary, argv...)
	c.Env = append(os.Environ(), env...)
	proc.Lead(c)
	c.Stderr = to
	c.WaitDelay = strayGrace
	return c
}

// feed connects the command's input. exec's own copying would hold Wait up until the input ends,
// even when the process has long ended.
func feed(c *exec.Cmd, input fleet.Input) (stop func(), started func(bool), err error) {
	if input == nil {
		return func() {}, func(bool) {}, nil // exec opens /dev/null
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c.Stdin = r
	src := input.Reader()
	var copying sync.WaitGroup
	started = func(ok bool) {
		r.Close()
		if ok {
			copying.Go(func() { io.Copy(w, struct{ io.Reader }{src}); w.Close() })
		}
	}
	stop = func() { src.Close(); w.Close(); copying.Wait() }
	return stop, started, nil
}

// kill ends the process group when ctx ends: TERM, grace, KILL.
func kill(ctx, abort context.Context, pid int, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	syscall.Kill(-pid, syscall.SIGTERM)
	grace := time.NewTimer(termGrace)
	defer grace.Stop()
	select {
	case <-ended:
		return
	case <-abort.Done():
	case <-grace.C:
	}
	syscall.Kill(-pid, syscall.SIGKILL)
}

// streams is the destination of output.
type streams struct {
	attempt fleet.Attempt
	foreign func(text []byte) int // bytes at the beginning of a text on standard error that are not the command's
}

// Write takes a text on standard error.
func (s streams) Write(p []byte) (int, error) {
	if n := s.foreign(p); n < len(p) {
		_, _ = fleet.Writer{Attempt: s.attempt, Stream: fleet.Stderr}.Write(p[n:])
	}
	return len(p), nil
}

func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1
	}
	return s.ExitCode()
}

func signalOf(s *os.ProcessState) string {
	ws, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return ""
	}
	return cmp.Or(strings.TrimPrefix(unix.SignalName(ws.Signal()), "SIG"), strconv.Itoa(int(ws.Signal())))
}

func local(err error) fleet.Outcome {
	o := fleet.Outcome{Engine: engineName, Class: fleet.Local, Exit: -1, Err: err.Error(), Cause: err}
	if errors.Is(err, exec.ErrNotFound) {
		o.Hint = "install the OpenSSH client, or use --engine native"
	}
	o.SlowDown = fleet.Exhausted(err)
	return o
}

func cancelled(ctx context.Context, ran fleet.Ran) fleet.Outcome {
	o := fleet.Outcome{Engine: engineName, Ran: ran, Exit: -1}
	o.Stop(context.Cause(ctx)) // ssh was ended, which cannot signal the command
	return o
}
