package openssh

import (
	"os"
	"os/exec"
	"time"

	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// Running is a running ssh, or a client with the same log, and its debug log.
type Running struct {
	*proc.Child
	log    *proc.Log
	stderr *proc.Tail
}

// maxSaid is how much of standard error is kept, in bytes.
const maxSaid = 8 << 10

// Start starts a command line by start, such as that of a Spawner. Its debug output goes to log,
// which must not exist. The process itself gets the files stdin and stdout, so that nothing of ours
// stands in the path of the data; nil is /dev/null. If a peer makes it log without end, it is
// ended.
func Start(argv, env []string, log string, stdin, stdout *os.File, start func(*exec.Cmd) error) (*Running, error) {
	r := &Running{stderr: &proc.Tail{Max: maxSaid}}
	var err error
	if r.log, err = proc.OpenLog(log); err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.Stderr = r.stderr
	proc.Unattended(cmd, env)
	if r.Child, err = proc.Begin(cmd, start); err != nil {
		r.log.Close()
		return nil, err
	}
	r.log.Follow(r.Cut)
	return r, nil
}

// Cut kills the program without waiting.
func (r *Running) Cut() { proc.KillGroup(r.Cmd) }

// lastWords is the time for an ssh whose output has ended to report the reason.
const lastWords = time.Second

// Linger gives an ssh whose output has ended a moment to report the reason.
func (r *Running) Linger() { r.Await(lastWords) }

// SoFar returns the content of the log so far. Nothing follows the log any more.
func (r *Running) SoFar() Negotiation { return ParseVerbose(r.log.Rest()) }

// Negotiation returns the content of the whole log, once the program has ended, and closes it. The
// error is one of the log itself, which the peer has caused.
func (r *Running) Negotiation() (Negotiation, error) {
	text, flooded := r.log.Close()
	if flooded {
		return ParseVerbose(text), proc.TooMuch(r.Path)
	}
	return ParseVerbose(text), nil
}

// Failure returns why the program has ended.
func (r *Running) Failure(n Negotiation) Failed {
	if detail, slain := r.Slain(); slain {
		return Failed{Outcome: record.Broken, Said: detail}
	}
	return Failure(n, r.stderr.String())
}

// Silent reports whether the program wrote nothing to standard error.
func (r *Running) Silent() bool { return r.stderr.String() == "" }
