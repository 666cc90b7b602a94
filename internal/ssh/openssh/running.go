package openssh

import (
	"os"
	"os/exec"
	"time"

	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// Running is an ssh, or a client that logs like it, whose command is ours, and its debug log.
type Running struct {
	*proc.Child
	log    *proc.Log
	stderr *proc.Tail
}

// maxSaid is how much of standard error is kept, in bytes.
const maxSaid = 8 << 10

// Start has start, such as that of a Spawner, start a command line whose debug output goes to log, which must not
// exist. Files given as stdin and stdout are handed to the process itself, so that nothing of ours stands in the path
// of the data; nil is /dev/null. A peer that makes it log without end ends it.
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

// Cut kills it without waiting.
func (r *Running) Cut() { proc.KillGroup(r.Cmd) }

// lastWords is how long an ssh whose output has ended may take to say why.
const lastWords = time.Second

// Linger gives an ssh whose output has ended a moment to say why.
func (r *Running) Linger() { r.Await(lastWords) }

// SoFar is what the log tells until now. Nothing follows it any more.
func (r *Running) SoFar() Negotiation { return ParseVerbose(r.log.Rest()) }

// Negotiation is what the whole log tells, once the program has ended, and closes it. The error is what is wrong with
// the log itself, which is the peer's doing.
func (r *Running) Negotiation() (Negotiation, error) {
	text, flooded := r.log.Close()
	if flooded {
		return ParseVerbose(text), proc.TooMuch(r.Path)
	}
	return ParseVerbose(text), nil
}

// Failure is why it has ended.
func (r *Running) Failure(n Negotiation) Failed {
	if detail, slain := r.Slain(); slain {
		return Failed{Outcome: record.Broken, Said: detail}
	}
	return Failure(n, r.stderr.String())
}

// Silent tells whether it wrote nothing to standard error.
func (r *Running) Silent() bool { return r.stderr.String() == "" }
