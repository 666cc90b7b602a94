package output

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
)

// slowest is the number of slow hosts in the summary.
const slowest = 3

// closing writes the summary at the end of a run: how many hosts ended how, who
// failed, who could not be reached, who was slow.
//
//	3 hosts: 1 ok, 1 failed, 1 unreachable in 1.2s; slowest: web3 1.1s
//	failed: web2
//	unreachable: web3
//	output cut off after 1000 bytes: web2
type closing struct {
	fleet.Nothing
	w     io.Writer
	width int         // of the terminal, 0 = none
	names [4][]string // by status; successful ones are only counted
	lost  Ends        // why output is incomplete
	slow  []slowHost  // the slowest first
}

type slowHost struct {
	name string
	took time.Duration
}

var _ fleet.Sink = (*closing)(nil)

// newClosing makes a closing that writes to w, a terminal with width columns or none.
func newClosing(w io.Writer, width int) *closing { return &closing{w: w, width: width, lost: Ends{}} }

// Done remembers the host.
func (t *closing) Done(r fleet.Result, _ fleet.Summary) error {
	status := r.Status()
	if status != fleet.OK {
		t.names[status] = append(t.names[status], r.Host.String())
	}
	if r.Incomplete != "" {
		t.lost.Add(r.Host, missing(&r))
	}
	if status == fleet.NotStarted {
		return nil
	}
	t.slow = append(t.slow, slowHost{r.Host.String(), took(&r)})
	slices.SortStableFunc(t.slow, func(a, b slowHost) int { return cmp.Compare(b.took, a.took) })
	t.slow = t.slow[:min(len(t.slow), slowest)]
	return nil
}

// End writes one line with the numbers and one for each kind of failure.
func (t *closing) End(so fleet.Summary) error {
	_, err := io.WriteString(t.w, t.text(&so))
	return err
}

func (t *closing) text(so *fleet.Summary) string {
	var b strings.Builder
	b.WriteString(numbers(so))
	if so.Elapsed > 0 { // nobody knows it of a run that was killed
		fmt.Fprintf(&b, " in %s", round(so.Elapsed))
	}
	before := "; slowest:"
	for _, s := range t.slow {
		more := fmt.Sprintf("%s %s %s", before, termsafe.Line(s.name), round(s.took))
		if so.Total() == 1 || t.width > 0 && b.Len()+text.Width(more) >= t.width {
			break
		}
		b.WriteString(more)
		before = ","
	}
	b.WriteByte('\n')
	for _, status := range []fleet.Status{fleet.Failed, fleet.Unreachable, fleet.NotStarted} {
		if list := t.names[status]; len(list) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", words[status], asSet(list))
		}
	}
	for _, gr := range bySize(t.lost) {
		fmt.Fprintf(&b, "output %s: %s\n", gr.text, asSet(gr.hosts))
	}
	return b.String()
}

var words = [...]string{fleet.OK: "ok", fleet.Failed: "failed", fleet.Unreachable: "unreachable", fleet.NotStarted: "not started"}

// numbers prints "3 hosts: 1 ok, 2 failed"; it leaves out kinds that did not occur.
func numbers(so *fleet.Summary) string {
	counts := [...]int{so.OK, so.Failed, so.Unreachable, so.NotStarted}
	var parts []string
	for status, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, words[status]))
		}
	}
	return strings.TrimSuffix(unit.Count(so.Total(), "host")+": "+strings.Join(parts, ", "), ": ")
}

// round keeps three digits of a duration.
func round(d time.Duration) time.Duration {
	for unit := time.Duration(1e13); unit > 1; unit /= 10 {
		if d >= 100*unit {
			return d.Round(unit)
		}
	}
	return d
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
