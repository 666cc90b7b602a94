package terminal

import (
	"errors"
	"io"
	"sync"

	"sshpace/internal/base/fault"
)

// Output is standard output. It remembers the first error and writes nothing after it, so that the
// written part is a beginning of the whole, and losses that no command checked for are known at the
// end.
type Output struct {
	w     io.Writer
	drawn *Screen // on the same terminal; nil: none

	mu  sync.Mutex
	err error
}

// NewOutput writes to w; if that is a terminal, in place of the drawing on screen.
func NewOutput(w io.Writer, screen *Screen) *Output {
	if !Is(w) {
		screen = nil
	}
	return &Output{w: w, drawn: screen}
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	if o.drawn != nil {
		_ = o.drawn.Draw()
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// Verdict returns the final error of a command: err, or else the error of its output.
func (o *Output) Verdict(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil || errors.Is(err, o.err) && fault.HintOf(err) == "" {
		return fault.WithHint(o.err, "make room, or write somewhere else; the output is incomplete")
	}
	return err
}
