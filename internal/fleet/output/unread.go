package output

import (
	"errors"
	"syscall"

	"sshpace/internal/fleet"
)

// unread tells sinks of a run, and what ended with it no more once nobody reads its output, as
// after `| head`: only hosts on which a command may still run are then news.
type unread struct {
	Tee
	gone bool
}

var _ fleet.Sink = (*unread)(nil)

// Output hands on a piece of output.
func (u *unread) Output(e fleet.Event) error { return u.heard(u.Tee.Output(e)) }

// Done hands on the end of a host.
func (u *unread) Done(r fleet.Result, so fleet.Summary) error {
	if u.gone && r.Ran != fleet.RanUnknown {
		return nil
	}
	return u.heard(u.Tee.Done(r, so))
}

// End ends all sinks, and sums nothing up for a reader who has left.
func (u *unread) End(so fleet.Summary) error {
	var errs []error
	for _, sink := range u.Tee {
		if _, sums := sink.(*closing); !sums || !u.gone {
			errs = append(errs, u.heard(sink.End(so)))
		}
	}
	return errors.Join(errs...)
}

func (u *unread) heard(err error) error {
	u.gone = u.gone || errors.Is(err, syscall.EPIPE)
	return err
}
