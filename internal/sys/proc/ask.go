package proc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sbin are directories of servers, which ordinary users seldom have on their PATH.
var sbin = []string{"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/bin", "/opt/homebrew/sbin"}

// Find finds a program, on the PATH or where servers are; "" says that it is not installed.
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

// answerLimit is how long a program may take to answer a question about itself, and
// answerSize how much of the answer is read: one that goes on is not what we think it is.
const (
	answerLimit = 10 * time.Second
	answerSize  = 64 << 10
)

// Ask runs a program for what it says of itself, on both of its outputs.
func Ask(ctx context.Context, argv ...string) (said string, err error) {
	answer := &Tail{Max: answerSize}
	err = ask(ctx, argv, answer, answer)
	return strings.TrimSpace(answer.String()), err
}

// AskApart is Ask with what each output said.
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
