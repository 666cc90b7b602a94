package history

import (
	"context"
	"errors"

	"sshpace/internal/base/fault"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/journal"
)

// Follow replays a recorded run, and continues until that run ends or ctx does. view makes the sink
// that shows it. A run that was killed is an error.
func (s *Store) Follow(ctx context.Context, rec *Record, view View) (fleet.Summary, error) {
	f, err := s.open(rec.ID)
	if err != nil {
		return fleet.Summary{}, err
	}
	defer f.Close()
	sink := rec.shownBy(view)
	_, err = output.Replay(journal.Follow(ctx, f), sink)
	if !sink.over && err == nil {
		err = &fault.Error{What: "run " + rec.ID + " was killed", Hint: "sshpace run --rerun " + rec.ID + ":unfinished is for the hosts with a connection at that moment; --list only names them"}
	}
	if !sink.over && sink.Sink != nil {
		err = errors.Join(sink.End(sink.so), err)
	}
	return sink.so, err
}

// followed makes its sink when the run begins.
type followed struct {
	fleet.Sink
	view func(fleet.Start) (fleet.Sink, error)
	so   fleet.Summary
	over bool
}

func (f *followed) Begin(s fleet.Start) (err error) {
	if f.Sink, err = f.view(s); err != nil {
		return err
	}
	return f.Sink.Begin(s)
}

func (f *followed) Done(r fleet.Result, so fleet.Summary) error {
	f.so = so
	return f.Sink.Done(r, so)
}

func (f *followed) End(so fleet.Summary) error {
	f.so, f.over = so, true
	return f.Sink.End(so)
}
