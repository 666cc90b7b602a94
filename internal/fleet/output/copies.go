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

// Output prints complete lines of standard output at once, and keeps standard error for End.
func (c *copies) Output(e fleet.Event) error {
	if e.Stream == fleet.Stderr {
		return c.wrong.Output(e)
	}
	return c.prefix.Output(e)
}

// Done prints the rest of the host's last line, and keeps its result for End.
func (c *copies) Done(r fleet.Result, so fleet.Summary) error {
	return errors.Join(Loss(c.rest(&r)), c.wrong.Done(r, so))
}

// End prints the gathered standard error.
func (c *copies) End(so fleet.Summary) error { return c.wrong.End(so) }
