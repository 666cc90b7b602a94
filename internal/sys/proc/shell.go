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

// limited keeps what is written, up to a limit. It is no io.ReaderFrom, which would have none.
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

// Shell has sh run a command line of the user's, with env besides our own environment, and
// returns what it writes to standard output, at most so many bytes: more is an error. The
// command keeps our terminal, where it may ask for something; what it leaves running is not
// waited for.
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
