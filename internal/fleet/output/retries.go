package output

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
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

// timings writes the lines of -v: one for every host with the time of each phase.
type timings struct {
	fleet.Nothing
	w io.Writer
}

// Done writes the line of a host.
func (t *timings) Done(r fleet.Result, _ fleet.Summary) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s by %s to %s, attempt %d:", termsafe.Line(r.Host.String()), r.Phase, orNone(r.Engine), orNone(r.Addr), r.Attempts)
	for p := fleet.PhaseDNS; p < fleet.PhaseExit; p++ {
		if d := r.Spent[p]; d > 0 {
			fmt.Fprintf(&b, " %s %s", p, d.Round(10*time.Microsecond))
		}
	}
	if r.Waited > time.Millisecond {
		fmt.Fprintf(&b, ", waited %s", r.Waited.Round(time.Millisecond))
	}
	if r.Launcher != "" {
		fmt.Fprintf(&b, ", launcher %s", termsafe.Line(r.Launcher))
	}
	if r.Hint != "" {
		fmt.Fprintf(&b, "; %s", termsafe.Line(r.Hint))
	}
	_, err := fmt.Fprintln(t.w, b.String())
	return err
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return termsafe.Line(s)
}
