package cli

import (
	"errors"
	"io"
	"os"
	"sync"
)

// outlet is standard output. It remembers the first error and writes nothing
// after it, so that what is there is a beginning of what was to be there, and
// losses that no command looked for are known at the end.
type outlet struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// verdict is the end of a command: err, or what became of its output where err
// says nothing else.
func (o *outlet) verdict(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil || errors.Is(err, o.err) && hintOf(err) == "" {
		return withHint(o.err, "make room, or write somewhere else; what was written is only the beginning")
	}
	return err
}

// fileOf is the file behind a writer, nil if there is none.
func fileOf(w io.Writer) *os.File {
	switch x := w.(type) {
	case *os.File:
		return x
	case *outlet:
		return fileOf(x.w)
	}
	return nil
}
