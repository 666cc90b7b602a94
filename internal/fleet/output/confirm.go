package output

import (
	"context"
	"fmt"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/sys/terminal"
)

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
