package dropin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"

	"sshpace/internal/base/termsafe"
)

// Main is a drop-in mode: a whole program under another name.
type Main func(ctx context.Context, env Env, args []string) int

// program is a mode: how a program reads its arguments, and words its errors.
type program struct {
	parse  func(env Env, args []string) (call, error) // a mistake is an *errUsage
	usage  func(env Env, text string)                 // prints the usage, "" where help was requested
	misuse int                                        // exit code of that
	said   func(env Env, text string) string          // any other error

	interrupted int    // exit code after Ctrl-C, where a run has no other
	stopped     string // printed after Ctrl-C
}

// call is a program with its arguments.
type call interface {
	// run returns the exit code; after an error 0 stands for the usual one.
	run(ctx context.Context, env Env) (code int, err error)
}

// instead is a text to print instead of running.
type instead struct{ text string }

func (i *instead) Error() string { return i.text }

// errUsage is a mistake in the arguments; its text is for the user.
type errUsage struct{ text string }

func (e *errUsage) Error() string { return e.text }

// bare is an error that is printed without the program's name.
type bare struct{ error }

// Ended is the cause of a context that a signal other than SIGINT ended; the exit code is that of a
// program that does not catch the signal.
type Ended struct{ Code int }

func (e *Ended) Error() string { return fmt.Sprintf("ended by signal %d", e.Code-128) }

func (p program) main(ctx context.Context, env Env, args []string) int {
	c, err := p.parse(env, args)
	if shown, ok := errors.AsType[*instead](err); ok {
		io.WriteString(env.Stdout, shown.text)
		return exitOK
	}
	if mistake, ok := errors.AsType[*errUsage](err); ok {
		p.usage(env, termsafe.Line(mistake.text))
		return p.misuse
	}
	code := exitOK
	if err == nil {
		code, err = c.run(ctx, env)
	}
	ended, signalled := errors.AsType[*Ended](context.Cause(ctx))
	switch {
	case signalled:
		return ended.Code
	case err == nil:
		return code
	case ctx.Err() != nil:
		io.WriteString(env.Stderr, p.stopped)
		return max(code, p.interrupted)
	case !errors.Is(err, syscall.EPIPE):
		text := termsafe.Line(err.Error())
		if _, plain := errors.AsType[bare](err); !plain {
			text = p.said(env, text)
		}
		fmt.Fprintln(env.Stderr, text)
	}
	return max(code, exitFailed)
}

// Mode returns the mode for a program name, nil for our own.
func Mode(name string) Main {
	name = filepath.Base(name)
	if p, ok := programs[name]; ok {
		return p.main
	}
	for _, beginning := range []string{"parallel-", "p"} { // as Debian calls them, and as their authors do
		end, ok := strings.CutPrefix(name, beginning)
		if tool, known := psshTools[end]; ok && known {
			return tool.program(name).main
		}
	}
	return nil
}

var programs = map[string]program{"pdsh": pdshProgram, "dshbak": dshbakProgram, "mpssh": mpsshProgram, "mpssh.py": pyProgram, "clush": clushProgram}

// Names lists the programs with modes.
var Names = []string{"pssh", "pscp", "pslurp", "pnuke", "prsync", "pdsh", "dshbak", "clush", "mpssh", "mpssh.py"}
