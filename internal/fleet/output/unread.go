package output

import (
	"errors"
	"syscall"

	"sshpace/internal/fleet"
)

// unread passes a run to sinks. Once nobody reads its output, as after `| head`, it reports only
// hosts on which a command may still run.
type unread struct {
	Tee
	gone bool
}

var _ fleet.Sink = (*unread)(nil)

// Output passes on a piece of output.
func (u *unread) Output(e fleet.Event) error { return u.heard(u.Tee.Output(e)) }

// Done passes on the end of a host.
func (u *unread) Done(r fleet.Result, so fleet.Summary) error {
	if u.gone && r.Ran != fleet.RanUnknown {
		return nil
	}
	return u.heard(u.Tee.Done(r, so))
}

// End ends all sinks, and prints no summary for a reader that has left.
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
