package openssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"sync"

	"sshpace/internal/base/sched"
	"sshpace/internal/sys/proc"
)

// answers holds the answers of one program to questions about itself. Each question is asked once,
// and the answer is kept for later runs where possible.
type answers struct {
	path   string
	before func(context.Context) (source, error) // before the first question was put

	mu      sync.Mutex
	known   map[string]answer // of earlier runs
	asked   map[string]*sched.Together[answer]
	answers map[string]answer // of this run
	waiting int               // for answers
	fresh   bool              // some are not in the file yet
}

// answer is the output of a program and its exit status.
type answer struct {
	Out, Err []byte
	Exit     int
}

// exited is a program that ended with an error of its own.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// ExitCode is the exit status.
func (e exited) ExitCode() int { return int(e) }

func newAnswers(path string) *answers {
	before := &sched.Together[source]{Find: func(ctx context.Context) (source, error) { return sourceOf(ctx, path) }}
	return &answers{
		path: path, before: before.Get,
		known: recall(path), asked: map[string]*sched.Together[answer]{}, answers: map[string]answer{},
	}
}

// question identifies a question without its text: options of the user may be secret.
func question(args []string) string { return checksum([]byte(strings.Join(args, "\x00")))[:32] }

// to returns the answer to a question.
func (s *answers) to(ctx context.Context, args []string) (answer, error) {
	name := question(args)
	s.mu.Lock()
	a, known := s.known[name]
	if known {
		s.answers[name] = a
		s.mu.Unlock()
		return a, nil
	}
	t := s.asked[name]
	if t == nil {
		t = &sched.Together[answer]{Find: func(ctx context.Context) (answer, error) { return s.ask(ctx, name, args) }}
		s.asked[name] = t
	}
	s.mu.Unlock()
	return t.Get(ctx)
}

// ask puts a question to the program.
func (s *answers) ask(ctx context.Context, name string, args []string) (a answer, err error) {
	s.mu.Lock()
	s.waiting++
	s.mu.Unlock()
	before, unknown := s.before(ctx)
	out, errs, err := proc.AskApart(ctx, append([]string{s.path}, args...)...)
	a.Out, a.Err = []byte(out), []byte(errs)
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() > 0 {
		a.Exit, err = ended.ExitCode(), nil
	}
	s.mu.Lock()
	s.waiting--
	if err == nil && unknown == nil && a.lasts() {
		s.answers[name], s.fresh = a, true
	}
	if s.waiting > 0 || !s.fresh {
		s.mu.Unlock()
		return a, err
	}
	s.fresh = false
	k := kept{before.states, s.toKeep()}
	s.mu.Unlock()
	if k.holds(before.programs...) {
		k.write(s.path)
	}
	return a, err
}

// toKeep returns the answers to keep for later runs; mu is held. If there are too many, those of
// earlier runs are dropped.
func (s *answers) toKeep() map[string]answer {
	all := maps.Clone(s.answers)
	if len(s.known)+len(all) <= maxAnswers {
		maps.Copy(all, s.known)
	}
	return all
}

// lasts reports whether the program will give the same answer again: it succeeded or refused an
// option. Other failures, such as a lack of memory, pass.
func (a answer) lasts() bool {
	return a.Exit == 0 || a.Exit == refusedExit && bytes.HasPrefix(a.Err, []byte("command-line"))
}

// refusedExit is the exit status of ssh's own errors (ssh(1)).
const refusedExit = 255
