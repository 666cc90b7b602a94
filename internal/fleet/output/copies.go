package output

import (
	"errors"

	"sshpace/internal/fleet"
)

// copies shows what a copy to many hosts tells: what was copied, as hosts end, and at
// the end what went wrong, once for all hosts with which the same did.
type copies struct {
	*prefix         // of standard output
	wrong   *gather // the rest
}

var _ fleet.Sink = (*copies)(nil)

// Output shows or keeps a piece of output.
func (c *copies) Output(e fleet.Event) error {
	if e.Stream == fleet.Stderr {
		return c.wrong.Output(e)
	}
	return c.prefix.Output(e)
}

// Done writes what was held, and keeps how the host ended.
func (c *copies) Done(r fleet.Result, so fleet.Summary) error {
	return errors.Join(Loss(c.rest(&r)), c.wrong.Done(r, so))
}

// End writes what went wrong.
func (c *copies) End(so fleet.Summary) error { return c.wrong.End(so) }
