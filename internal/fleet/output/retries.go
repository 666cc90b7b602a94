package output

import (
	"fmt"
	"io"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
)

// retries reports that hosts are being retried: not for a moment's rush, and not again and again.
type retries struct {
	fleet.Nothing
	w               io.Writer
	since, reported time.Time
}

const (
	retryPatience = 3 * time.Second
	retryEvery    = 15 * time.Second
)

// Waiting reports how many hosts wait for another try.
func (n *retries) Waiting(hosts int) {
	if n.due(time.Now(), hosts) {
		fmt.Fprintf(n.w, "sshpace: retrying %s: too busy, or down (--retry-for sets for how long)\n", unit.Count(hosts, "host"))
	}
}

func (n *retries) due(now time.Time, hosts int) bool {
	if n.since.IsZero() {
		n.since = now
	}
	if hosts == 0 || now.Sub(n.since) < retryPatience || now.Sub(n.reported) < retryEvery {
		return false
	}
	n.reported = now
	return true
}
