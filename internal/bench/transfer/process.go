//go:build linux

// Package transfer moves bytes through SSH as people do: a pipe, scp, sftp, rsync, a forwarded
// port, a jump host, several sessions on one connection, several connections. It times whole runs
// of the real programs, in turns and in random order, and verifies the received data.
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

	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Reading is the cost of one run, from the start of its first process to the end of its last.
type Reading struct {
	Wall   time.Duration
	Client time.Duration // CPU time of the programs at this end; 0 where it is out of sight
	Server time.Duration // and of the server's processes; 0 where it is out of sight
	// Verified is the time, after that, to compare the received data with the sent data.
	Verified time.Duration
}

// Process is a program to run. Stdin and Stdout are handed to it; nil is /dev/null.
type Process struct {
	Argv, Env     []string
	Stdin, Stdout *os.File
	Input         string // its standard input, where Stdin is nil
	// Plain splits its standard error into lines; nil if it writes lines.
	Plain func(said string) string
}

// Runner runs processes that end with sshpace, however that ends.
type Runner struct {
	bed.Bed
	Spawner *proc.Spawner
	Limit   time.Duration // that a run may take

	nested bool // a connection stays open around the runs
	serial int  // of files
}

// Failure says that a run did not do its work.
type Failure struct {
	Program string
	Detail  string // the program's last message, or the error in the received data
}

func (f *Failure) Error() string { return f.Program + ": " + f.Detail }

// Arrived returns a Failure if fewer or more bytes arrived than were sent.
func Arrived(program string, got, size int64) error {
	if got == size {
		return nil
	}
	return &Failure{program, fmt.Sprintf("%d of %d bytes arrived", got, size)}
}

// Run starts all processes at once and waits for all of them. The first failure ends the others.
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

// explained adds the private server's message to a failure.
func (r *Runner) explained(err error) error {
	failure, ok := errors.AsType[*Failure](err)
	if !ok || r.Server == nil {
		return err
	}
	failure.Detail = r.Server.Explained(failure.Detail)
	return failure
}

// serverCPU returns the CPU time of the private server's connections so far, all of them being
// over.
func (r *Runner) serverCPU() time.Duration {
	if r.Server == nil || r.nested {
		return 0
	}
	return r.Server.Settle(loopback.Grace)
}

// job is a running process.
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

// wait waits for the end and returns the error of the process.
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

// deaf is the time after which a process that was asked to end is asked once more.
const deaf = 200 * time.Millisecond

// terminate ends the process in an orderly way, so that its CPU time is known. ssh forgets a signal
// that comes just before it waits for something else (9.2: between quit_pending and poll), so that
// it is asked again.
func (j *job) terminate() {
	for ended := j.HasEnded(); !ended; ended = j.Await(deaf) {
		_ = syscall.Kill(-j.Process.Pid, syscall.SIGTERM)
	}
}

// maxSaid is how much of a program's standard error is kept, in bytes.
const maxSaid = 64 << 10

// why returns the program's own reason of its end, or err.
func (j *job) why(err error) string {
	said := j.said.String()
	if j.plain != nil {
		said = j.plain(said)
	}
	return cmp.Or(openssh.Reason(said), err.Error())
}
