//go:build linux

// Package transfer moves bytes through SSH in the ways in which people do: a
// pipe, scp, sftp, rsync, a forwarded port, a jump host, several sessions on one
// connection, several connections. It times whole runs of the real programs, in
// turns and in random order, and looks at what arrived.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// settle is how long a server may take to notice that its client is gone.
const settle = 5 * time.Second

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
	if tail := r.Server.LogTail(); tail != "" {
		failure.Detail += " (server: " + tail + ")"
	}
	return failure
}

// serverCPU is what the connections of the private server have used so far, all
// of them being over.
func (r *Runner) serverCPU() time.Duration {
	if r.Server == nil || r.nested {
		return 0
	}
	return r.Server.Settle(settle)
}

// job is a process under way.
type job struct {
	*proc.Child
	said    *lastWords
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
	j = &job{said: newLastWords()}
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
	return &Failure{name, j.said.why(j.End)}
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

// lastWords keeps the end of what a program writes to standard error.
type lastWords struct{ proc.Tail }

func newLastWords() *lastWords { return &lastWords{proc.Tail{Max: 64 << 10}} }

// telling are words of lines that say more than the last one: PuTTY gives up what is
// vulnerable, ssh a port that is taken, or a session that is one too many, copies a disk that is full.
var telling = []string{"vulnerable", "Address already in use", "Session open refused", "No space left on device", "write remote ", "subsystem request failed"}

// farewell ends the last line of copies whose ssh is gone, which mostly has said why.
const farewell = "Connection closed"

// why is the last line that is no debug output and no farewell, unless another is
// more telling.
func (l *lastWords) why(err error) string {
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	why := err.Error()
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if slices.ContainsFunc(telling, func(words string) bool { return strings.Contains(line, words) }) {
			return sentence(lines, i)
		}
		if line != "" && !isChatter(line) && (!strings.HasSuffix(line, farewell) || i == 0) {
			why = line
		}
	}
	return why
}

// sentence is a line, whole where PuTTY has wrapped it: its explanations begin with
// "The " and end with a full stop. Other programs say it in one line.
func sentence(lines []string, at int) string {
	first := at
	for first > 0 && !strings.HasPrefix(lines[first], "The ") {
		first--
	}
	last := at
	for last < len(lines)-1 && !strings.HasSuffix(strings.TrimSpace(lines[last]), ".") {
		last++
	}
	if !strings.HasPrefix(lines[first], "The ") || last-first > wrapped {
		first, last = at, at
	}
	return strings.Join(strings.Fields(strings.Join(lines[first:last+1], " ")), " ")
}

// wrapped is how many lines more a sentence may have.
const wrapped = 4

// chatter begins lines that explain no failure, besides those of ssh's own log.
var chatter = []string{"Connection to ", "Connection closed", "Executing:", "sftp>", "lost connection", "rsync error:"}

func isChatter(line string) bool {
	return openssh.ReadEvent(line).Kind != openssh.Message || slices.ContainsFunc(chatter, func(begin string) bool { return strings.HasPrefix(line, begin) })
}
