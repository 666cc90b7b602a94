package scan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/knownhosts/check"
)

// states are all of them, the worst first, with what to do where it may be an attack.
var states = []struct {
	State
	word, hint string
}{
	{Revoked, "REVOKED", check.RevokedHint},
	{Changed, "CHANGED", check.ChangedHint},
	{Contradicted, "NOT AS LISTED", "find out which is right, the host or the list (or the DNS): it may be an attack; --all-types shows whether the list means another key of the host"},
	{Unconfirmed, "new and not confirmed", ""},
	{Confirmed, "new and confirmed", ""},
	{Known, "known", ""},
}

// toReview is how many of them people must look at.
const toReview = 4

// Review writes what people should look at: nothing of it is recorded. The last line counts.
func (r Report) Review(w io.Writer) {
	for _, s := range states {
		show := func(h *Host, k Key) {
			fmt.Fprintf(w, "%s: %s: %s\n", s.word, termsafe.Line(h.Host), termsafe.Line(k.Why))
		}
		if s.hint != "" && r.each(s.State, show) > 0 {
			fmt.Fprintf(w, "sshpace: hint: %s\n", s.hint)
		}
	}
	if keys := r.byKey(func(k Key) bool { return k.State == Unconfirmed }); len(keys) > 0 {
		fmt.Fprintln(w, "new, and confirmed by nobody:")
		for _, g := range keys {
			fmt.Fprintf(w, "  %s  %s%s%s\n", g.key, g.set(), g.shared(": "), termsafe.Line(g.why))
		}
		fmt.Fprintln(w, "sshpace: hint: compare them with the hosts' own (ssh-keygen -lf), and give a list of those with --fingerprints")
	}
	for _, g := range r.byKey(func(k Key) bool { return k.State != Unconfirmed }) {
		if text := g.shared(""); text != "" {
			fmt.Fprintf(w, "%s: %s  %s\n", text, g.key, g.set())
		}
	}
	ends := output.Ends{}
	for _, h := range r {
		if h.Class != "" {
			text := h.Err
			if h.hint != "" {
				text += "; " + h.hint
			}
			ends.Add(h.target, text)
		}
	}
	ends.Write(w)
	fmt.Fprintf(w, "sshpace: %s\n", r.counts())
}

// each calls f for all keys in a state, and returns their number.
func (r Report) each(s State, f func(*Host, Key)) (n int) {
	for _, h := range r {
		for _, k := range h.Keys {
			if k.State == s {
				f(h, k)
				n++
			}
		}
	}
	return n
}

// sameKey is a key, and the hosts that have shown it.
type sameKey struct {
	key   string // type and fingerprint
	hosts []string
	names map[string]bool // in known_hosts, of all hosts that have the key
	why   string          // more about it
}

func (g *sameKey) set() string { return termsafe.Line(hostset.Fold(g.hosts)) }

// shared says that several hosts have the key, behind a text; "" if it is one host's.
func (g *sameKey) shared(behind string) string {
	if len(g.names) < 2 {
		return ""
	}
	return fmt.Sprintf("%sone key of %d hosts, which are one machine or copies", behind, len(g.names))
}

// byKey sorts some keys by how many hosts have shown them.
func (r Report) byKey(wanted func(Key) bool) (list []*sameKey) {
	known, names := map[string]*sameKey{}, map[string]map[string]bool{}
	for _, h := range r {
		for _, k := range h.Keys {
			if !wanted(k) {
				continue
			}
			text := k.Type + " " + k.Fingerprint
			if names[text] == nil {
				names[text] = map[string]bool{}
			}
			g := known[text+k.Why]
			if g == nil {
				g = &sameKey{key: text, names: names[text]}
				known[text+k.Why], list = g, append(list, g)
				if k.Why != "" {
					g.why = ": " + k.Why
				}
			}
			g.hosts, g.names[h.Name] = append(g.hosts, h.Host), true
		}
	}
	slices.SortStableFunc(list, func(a, b *sameKey) int { return cmp.Compare(len(b.hosts), len(a.hosts)) })
	return list
}

// counts is the last line.
func (r Report) counts() string {
	parts := []string{}
	for _, s := range states {
		if n := r.each(s.State, func(*Host, Key) {}); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.word))
		}
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	text := fmt.Sprintf("keys of %s: %s", unit.Count(len(r), "host"), strings.Join(parts, ", "))
	if n := r.unreached(); n > 0 {
		text += fmt.Sprintf("; not reached: %s", unit.Count(n, "host"))
	}
	return text
}

func (r Report) unreached() (n int) {
	for _, h := range r {
		if h.Class != "" {
			n++
		}
	}
	return n
}

// Verdict is the exit code: a key that must be reviewed, otherwise hosts that were not reached.
func (r Report) Verdict() error {
	for _, s := range states[:toReview] {
		if r.each(s.State, func(*Host, Key) {}) > 0 {
			return fault.Exit(fault.Found)
		}
	}
	if r.unreached() > 0 {
		return fault.Exit(fault.Unreachable)
	}
	return nil
}

// WriteJSON writes everything, with the lines that may be recorded.
func (r Report) WriteJSON(w io.Writer, lines []string) error {
	return termsafe.WriteJSON(w, struct {
		Schema string   `json:"schema"`
		Hosts  Report   `json:"hosts"`
		Lines  []string `json:"lines"`
	}{"sshpace.known-hosts.scan/1", r, append([]string{}, lines...)}, "  ")
}
