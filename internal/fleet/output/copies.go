package output

import (
	"errors"

	"sshpace/internal/fleet"
)

// copies shows the results of a copy to many hosts: the copied files, as hosts end, and at the end
// the errors, each once for all hosts that share it.
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

// Done writes held output, and keeps the end of the host.
func (c *copies) Done(r fleet.Result, so fleet.Summary) error {
	return errors.Join(Loss(c.rest(&r)), c.wrong.Done(r, so))
}

// End writes the errors.
func (c *copies) End(so fleet.Summary) error { return c.wrong.End(so) }
