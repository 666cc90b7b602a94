package hostlist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/proc"
)

// programTime is for a program to write an inventory: those of clouds ask page by page.
const programTime = 2 * time.Minute

// beginnings are those of files that can be run: a script, and the binaries of Linux and macOS.
var beginnings = []string{"#!", "\x7fELF", "\xcf\xfa\xed\xfe"}

// isProgram reports whether a file is to be run, for a user who has named it.
func isProgram(name string, info fs.FileInfo) (bool, error) {
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return false, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 4))
	for _, beginning := range beginnings {
		if strings.HasPrefix(string(head), beginning) {
			return true, err
		}
	}
	return false, err
}

// addScript adds the answer of an inventory script.
func (v *Inventory) addScript(ctx context.Context, name string) error {
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	ask := func(ctx context.Context, stderr io.Writer, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stderr = stderr
		return proc.Answer(cmd, file.Config)
	}
	timed, end := context.WithTimeoutCause(ctx, programTime, fmt.Errorf("no end after %v", programTime))
	defer end()
	v.perHost = func(host string) (string, error) {
		answer, _, err := asked(timed, func(stderr io.Writer) (string, error) { return ask(timed, stderr, "--host", host) })
		if err == nil {
			answer, err = plain([]byte(answer), name)
		}
		return answer, err
	}
	defer func() { v.perHost = nil }()
	return v.addAnswer(timed, name, func(ctx context.Context, stderr io.Writer) (string, error) { return ask(ctx, stderr, "--list") })
}

// AddCommand adds the answer of a command line, in any form of an inventory.
func (v *Inventory) AddCommand(ctx context.Context, line string) error {
	const flag = "--inventory-command"
	v.files = append(v.files, flag)
	return v.addAnswer(ctx, flag, func(ctx context.Context, stderr io.Writer) (string, error) {
		return proc.Shell(ctx, line, nil, stderr, file.Config)
	})
}

// addAnswer adds the output of a program.
func (v *Inventory) addAnswer(ctx context.Context, shown string, run func(ctx context.Context, stderr io.Writer) (string, error)) error {
	timed, end := context.WithTimeoutCause(ctx, programTime, fmt.Errorf("no end after %v", programTime))
	defer end()
	before := len(v.names)
	answer, said, err := asked(timed, func(stderr io.Writer) (string, error) { return run(timed, stderr) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		answer, err = plain([]byte(answer), shown)
	}
	if err == nil && strings.TrimSpace(answer) == "" {
		err = errors.New("it writes nothing; no hosts are {}")
	}
	if err == nil {
		err = v.parse("", shown, answer)
		if err == nil && len(v.names) == before && said != "" {
			v.warn("%s names no hosts: %s", shown, said)
		}
	} else {
		err = fmt.Errorf("%s: %w", shown, err)
	}
	if err != nil {
		err = fault.WithHint(err, "run it by itself to see its inventory")
	}
	return err
}

// maxSaid is the part of a program's standard error that is kept.
const maxSaid = 4 << 10

// asked runs a program for its answer. said is the first line of its standard error, and part of an
// error.
func asked(ctx context.Context, run func(stderr io.Writer) (string, error)) (answer, said string, err error) {
	stderr := &proc.Tail{Max: maxSaid}
	answer, err = run(stderr)
	said, _, _ = strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil && said != "":
		err = fmt.Errorf("%w: %s", err, said)
	}
	return answer, said, err
}
