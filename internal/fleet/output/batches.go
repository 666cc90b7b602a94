package output

import (
	"context"
	"fmt"
	"io"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

// batches reports when a batch begins, and asks before the second one if requested.
type batches struct {
	fleet.Nothing
	w       io.Writer
	confirm func(question string) (bool, error) // nil continues without asking
}

var _ fleet.Sink = (*batches)(nil)

// Batch writes a line for a batch that begins.
func (n *batches) Batch(b fleet.Batch) error {
	if b.Number == 2 && !b.Begun && n.confirm != nil {
		yes, err := n.confirm(fmt.Sprintf("sshpace: %s; continue with the others?", numbers(&b.Before)))
		if err != nil {
			return &fleet.Declined{Why: "nobody confirmed: " + err.Error()}
		}
		if !yes {
			return &fleet.Declined{Why: "not confirmed"}
		}
	}
	text := fmt.Sprintf("sshpace: batch %d of %d, %s", b.Number, b.Of, unit.Count(b.Hosts, "host"))
	if b.Number > 1 {
		text += "; so far " + numbers(&b.Before)
	}
	if b.Pause > 0 {
		text += fmt.Sprintf("; then a pause of %s", b.Pause)
	}
	_, err := fmt.Fprintln(n.w, text)
	return Loss(err)
}

// Confirm asks the user before a command runs on more hosts than limit; 0: it asks nobody.
func Confirm(ctx context.Context, limit int, command string, hosts []host.Host) error {
	if limit <= 0 || len(hosts) <= limit {
		return nil
	}
	yes, err := terminal.Confirm(ctx, fmt.Sprintf("sshpace: run %q on %d hosts: %s?", command, len(hosts), asSet(host.Names(hosts))))
	if err != nil {
		return &fault.Error{What: fmt.Sprintf("%d hosts are more than %d, and nobody confirmed: %s", len(hosts), limit, err), Hint: "say --yes", Code: fault.Misuse}
	}
	if !yes {
		return &fault.Error{What: "not confirmed; nothing was run", Hint: "sshpace run --list shows the hosts"}
	}
	return nil
}
