package proc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sbin lists directories of servers, which are seldom on the PATH of ordinary users.
var sbin = []string{"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/bin", "/opt/homebrew/sbin"}

// Find finds a program, on the PATH or in the directories of servers; "" means not installed.
func Find(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, dir := range sbin {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// answerLimit is the time for a program to answer a question about itself, and answerSize the part
// of the answer that is read: a longer one does not come from the program that we expect.
const (
	answerLimit = 10 * time.Second
	answerSize  = 64 << 10
)

// Ask runs a program that prints something about itself, and returns both of its outputs together.
func Ask(ctx context.Context, argv ...string) (said string, err error) {
	answer := &Tail{Max: answerSize}
	err = ask(ctx, argv, answer, answer)
	return strings.TrimSpace(answer.String()), err
}

// AskApart is Ask with the outputs kept apart.
func AskApart(ctx context.Context, argv ...string) (stdout, stderr string, err error) {
	out, errs := &Tail{Max: answerSize}, &Tail{Max: answerSize}
	err = ask(ctx, argv, out, errs)
	return out.String(), errs.String(), err
}

func ask(ctx context.Context, argv []string, stdout, stderr *Tail) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := Run(cmd); ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}

// limited keeps written text, up to a limit. It is not an io.ReaderFrom, which would have none.
type limited struct {
	kept bytes.Buffer
	most int
	over error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.kept.Len()+len(p) > l.most {
		l.over = fmt.Errorf("it writes more than %d KiB", l.most>>10)
		return 0, l.over
	}
	return l.kept.Write(p)
}

// answer returns the text. Too much of it explains how the program ended.
func (l *limited) answer(err error) (string, error) { return l.kept.String(), cmp.Or(l.over, err) }

// Shell lets sh run a command line of the user, with env added to our environment, and returns its
// standard output, at most most bytes: more is an error. The command keeps our terminal, where it
// may ask for something; processes that it leaves running are not waited for.
func Shell(ctx context.Context, line string, env []string, stderr io.Writer, most int) (string, error) {
	out := limited{most: most}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &out, stderr
	cmd.WaitDelay = Grace
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil
	}
	return out.answer(err)
}

// Answer runs a program of the user's that prints something, such as host keys, and returns its
// standard output, at most most bytes: more is an error. Whatever it leaves running ends.
func Answer(cmd *exec.Cmd, most int) (string, error) {
	out := limited{most: most}
	cmd.Stdout = &out
	err := Run(cmd)
	return out.answer(err)
}
