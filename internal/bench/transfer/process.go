//go:build linux

// Package transfer moves bytes through SSH in the ways in which people do: a
// pipe, scp, sftp, rsync, a forwarded port, a jump host, several sessions on one
// connection, several connections. It times whole runs of the real programs, in
// turns and in random order, and looks at what arrived.
package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sshpace/internal/bench/loopback"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Reading is what one run took, from the start of its first process to the end
// of its last.
type Reading struct {
	Wall   time.Duration
	Client time.Duration // CPU time of the programs at this end
	Server time.Duration // and of the server's processes; 0 where it is out of sight
	// Verified is how long it took, after that, to compare what arrived with what was
	// sent.
	Verified time.Duration
}

// Process is a program to run. Stdin and Stdout are handed to it; nil is
// /dev/null.
type Process struct {
	Argv, Env     []string
	Stdin, Stdout *os.File
	Input         string // its standard input, where Stdin is nil
	// Plain makes lines of what it says on standard error; nil where it says it in lines.
	Plain func(said string) string
}

// Runner runs processes that end with sshpace, however that ends.
type Runner struct {
	Spawner *proc.Spawner
	Server  *loopback.Server // nil where it is on another machine
	Limit   time.Duration    // that a run may take

	nested bool // a connection stays open around the runs
	serial int  // of files
}

// Failure says that a run did not do what it should have done.
type Failure struct {
	Program string
	Detail  string // what the program said last, or what is wrong with what arrived
}

func (f *Failure) Error() string { return f.Program + ": " + f.Detail }

// Arrived is a Failure where not as many bytes arrived as were sent.
func Arrived(program string, got, size int64) error {
	if got == size {
		return nil
	}
	return &Failure{program, fmt.Sprintf("%d of %d bytes arrived", got, size)}
}

// Run starts all processes at once and waits for all of them. The first failure
// ends the others.
func (r *Runner) Run(ctx context.Context, all ...Process) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	before := r.serverCPU()
	if r.Server != nil {
		r.Server.Fresh(false)
	}
	start := time.Now()
	var running []*job
	var failed error
	for _, p := range all {
		j, err := r.start(ctx, p)
		if err != nil {
			failed = err
			cancel()
			break
		}
		running = append(running, j)
	}
	var reading Reading
	for _, j := range running {
		if err := j.wait(ctx); err != nil && failed == nil {
			failed = err
			cancel()
		}
		reading.Client += j.CPU()
	}
	reading.Wall = time.Since(start)
	reading.Server = r.serverCPU() - before
	return reading, r.explained(failed)
}

// explained adds what the private server said to a failure.
func (r *Runner) explained(err error) error {
	failure, ok := errors.AsType[*Failure](err)
	if !ok || r.Server == nil {
		return err
	}
	failure.Detail = r.Server.Explained(failure.Detail)
	return failure
}

// serverCPU is what the connections of the private server have used so far, all
// of them being over.
func (r *Runner) serverCPU() time.Duration {
	if r.Server == nil || r.nested {
		return 0
	}
	return r.Server.Settle(loopback.Grace)
}

// job is a process under way.
type job struct {
	*proc.Child
	said    *proc.Tail
	plain   func(string) string
	release func() bool
}

func (r *Runner) start(ctx context.Context, p Process) (j *job, err error) {
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	if p.Stdin != nil {
		cmd.Stdin = p.Stdin
	} else if p.Input != "" {
		cmd.Stdin = strings.NewReader(p.Input)
	}
	if p.Stdout != nil {
		cmd.Stdout = p.Stdout
	}
	j = &job{said: &proc.Tail{Max: maxSaid}, plain: p.Plain}
	cmd.Stderr = j.said
	proc.Unattended(cmd, p.Env)
	if j.Child, err = proc.Begin(cmd, r.Spawner.Start); err != nil {
		return nil, err
	}
	j.release = context.AfterFunc(ctx, j.Kill)
	return j, nil
}

// wait waits for the end and says what went wrong.
func (j *job) wait(ctx context.Context) error {
	<-j.Ended
	j.release()
	name := filepath.Base(j.Path)
	switch {
	case j.End == nil, errors.Is(j.End, exec.ErrWaitDelay):
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Failure{name, "it took too long"}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &Failure{name, j.why(j.End)}
}

// deaf is how long a process may take to end before it is asked once more.
const deaf = 200 * time.Millisecond

// terminate ends the process in peace, so that what it used is known. ssh forgets a signal that
// comes just before it waits for something else (9.2: between quit_pending and poll), so that it
// is asked again.
func (j *job) terminate() {
	for ended := j.HasEnded(); !ended; ended = j.Await(deaf) {
		_ = syscall.Kill(-j.Process.Pid, syscall.SIGTERM)
	}
}

// maxSaid is what is kept of what a program writes to standard error, in bytes.
const maxSaid = 64 << 10

// why is what the program said of its end, or err.
func (j *job) why(err error) string {
	said := j.said.String()
	if j.plain != nil {
		said = j.plain(said)
	}
	return cmp.Or(openssh.Reason(said), err.Error())
}
