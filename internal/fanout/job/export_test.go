package job

import (
	"context"
	"fmt"
)

// Header returns the state as headers.
func (s *State) Header() map[string]string { return s.header() }

// Subject returns the subject of a batch.
func Subject(kind, pool, job string, number int) string { return subject(kind, pool, job, number) }

// SpecsOf reads a job.
var SpecsOf = specsOf

// Writer writes the journal of a batch.
type Writer struct{ *writer }

// NewWriter begins to write a journal for an instance of a launcher, until life ends.
func NewWriter(life context.Context, bus Bus, subject, instance string, idempotent bool) (Writer, error) {
	entries := 0
	w := &writer{
		bus: bus, subject: subject, instance: instance, idempotent: idempotent, life: life,
		id:   func() string { entries++; return fmt.Sprint(instance, subject, entries) },
		note: func(Bits) error { return nil }, trouble: func(error) {}, lost: func(error) {},
	}
	err := w.begin(life)
	go w.keep()
	return Writer{w}, err
}

// Start starts a host.
func (w Writer) Start(ctx context.Context, host int) error { return w.start(ctx, host) }

// End ends a host.
func (w Writer) End(host int) error { w.end(host, false); return w.flush() }

// Previous returns the instance that had the batch before.
func (w Writer) Previous() string { return w.previous() }

// Now returns the state.
func (w Writer) Now() (State, bool) { return w.now() }

// Parts returns the parts of a subject.
var Parts = parts
