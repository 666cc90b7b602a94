package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// limited keeps written text, up to a limit. It is not an io.ReaderFrom, which would have none.
type limited struct {
	kept bytes.Buffer
	most int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.kept.Len()+len(p) > l.most {
		return 0, fmt.Errorf("it writes more than %d KiB", l.most>>10)
	}
	return l.kept.Write(p)
}

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
	return out.kept.String(), err
}

// Answer runs a program of the user's that prints something, such as host keys, and returns its
// standard output, at most most bytes: more is an error. Whatever it leaves running ends.
func Answer(cmd *exec.Cmd, most int) (string, error) {
	out := limited{most: most}
	cmd.Stdout = &out
	err := Run(cmd)
	return out.kept.String(), err
}
