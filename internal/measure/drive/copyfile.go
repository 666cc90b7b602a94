package drive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Copier copies one file to a destination with scp or sftp, and times the whole
// program as a user would.
type Copier struct {
	Program     string // absolute path of scp or sftp
	SSH         openssh.Program
	Destination openssh.Destination
	Spawner     *proc.Spawner
	Connect     time.Duration
	From        string // local file
	To          string // path on the host: of a file that may be overwritten
	Size        unit.Bytes
}

// copyGrace is how long a copy may take beyond what a slow line needs.
const (
	copyGrace   = 30 * time.Second
	slowestCopy = 256 << 10 // bytes per second
)

// Copy copies once under a suite. A copy that fails is a sample with an outcome.
func (c *Copier) Copy(ctx context.Context, want alg.Suite) (record.Sample, error) {
	argv, stdin := c.command(want)
	ctx, cancel := context.WithTimeout(ctx, copyGrace+c.Connect+time.Duration(float64(c.Size)/slowestCopy*1e9))
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stderr = &limited{buffer: &stderr}
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SSH_ASKPASS_REQUIRE=never")
	s := record.Sample{Start: time.Now()}
	if err := c.Spawner.Start(cmd); err != nil {
		return s, fmt.Errorf("start %s: %w", argv[0], err)
	}
	stop := context.AfterFunc(ctx, func() { proc.KillGroup(cmd) })
	err := cmd.Wait()
	proc.EndGroup(cmd.Process.Pid, 0) // the ssh of a jump host
	s.ElapsedNS = time.Since(s.Start)
	stop()
	n := openssh.ParseVerbose(stderr.String())
	s.Got, s.Rekeys = n.Got, n.Rekeys
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		s.Outcome, s.Detail = record.TimedOut, "the copy took too long"
	case ctx.Err() != nil:
		s.Outcome, s.Detail = record.Aborted, "stopped by the user"
	case err != nil:
		s.Outcome, s.Detail = openssh.Failure(n, stderr.String())
	case n.Got.Bulk() != want.Bulk():
		s.Outcome, s.Detail = record.Mismatched, fmt.Sprintf("wanted %s, negotiated %s", want.Bulk(), n.Got.Bulk())
	default:
		s.Outcome, s.Bytes = record.OK, c.Size
	}
	return s, nil
}

// command is the command line, and what it reads. Paths are our own: they hold
// no blanks and no quotes.
func (c *Copier) command(want alg.Suite) (argv []string, stdin string) {
	argv = append([]string{c.Program}, c.SSH.CopyOptions(c.Destination, want, c.Connect)...)
	if filepath.Base(c.Program) == "sftp" {
		return append(argv, "-b", "-", "--", c.Destination.Host), "put " + c.From + " " + c.To + "\n"
	}
	return append(argv, "--", c.From, c.Destination.Host+":"+c.To), ""
}

// limited keeps the first bytes of a stream.
type limited struct{ buffer *bytes.Buffer }

const limitedTo = 256 << 10

func (l *limited) Write(p []byte) (int, error) {
	l.buffer.Write(p[:min(len(p), limitedTo-l.buffer.Len())])
	return len(p), nil
}
