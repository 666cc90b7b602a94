package conf

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/host"
)

// Resolved is the effective configuration of one host. It does not change.
type Resolved struct {
	Name string // the requested host
	// Gaps are the values that this package could not know. As long as there are any, values may be
	// wrong; an Asker fills them.
	Gaps []Gap

	config  *Config
	set     [keywordCount]*Value
	several lists
	jumps   []host.Endpoint
	ordered bool // see KeepsHostKeyOrder
	// unshared: ControlPath is none, and not just unset.
	unshared bool
	conn     connection
}

// lists are the values of keywords that may have several.
type lists []manyValues

type manyValues struct {
	keyword Keyword
	values  []Value
}

// of returns nil for a keyword without a list, which differs from an empty list.
func (l lists) of(k Keyword) []Value {
	for _, m := range l {
		if m.keyword == k {
			return m.values
		}
	}
	return nil
}

func (l *lists) put(k Keyword, values []Value) {
	for i, m := range *l {
		if m.keyword == k {
			(*l)[i].values = values
			return
		}
	}
	*l = append(*l, manyValues{k, values})
}

func (l *lists) add(k Keyword, v Value) { l.put(k, append(l.of(k), v)) }

// Gap is one value that only ssh itself, a program or the DNS knows.
type Gap struct {
	Reason string
	Origin Origin
}

// String returns the reason and its place.
func (g Gap) String() string { return fmt.Sprintf("%s (%s)", g.Reason, g.Origin) }

// Get returns the value of a keyword as ssh -G shows it, and where it comes from. ok is false for
// keywords that are not set and have no default. Of keywords that may be given several times it
// returns the first.
func (r *Resolved) Get(k Keyword) (v Value, ok bool) {
	if k.several() {
		for _, v := range r.all(k) {
			return v, true
		}
		return v, false
	}
	if r.set[k] == nil {
		return v, false
	}
	return *r.set[k], true
}

// All returns the values of IdentityFile, CertificateFile, SendEnv and of keywords kept as text,
// one for each line; of other keywords the only one.
func (r *Resolved) All(k Keyword) []Value { return slices.Clone(r.all(k)) }

func (r *Resolved) all(k Keyword) []Value {
	switch {
	case k.several() && r.several.of(k) != nil:
		return r.several.of(k)
	case k.several():
		return r.config.usual.of(k)
	case r.set[k] != nil:
		return []Value{*r.set[k]}
	}
	return nil
}

// Settings goes through all keywords that have a value, in the order of the manual page.
func (r *Resolved) Settings() iter.Seq2[Keyword, Value] {
	return func(yield func(Keyword, Value) bool) {
		for _, k := range manual() {
			for _, v := range r.shown(k) {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

// shown is All with the two parts of ForwardAgent joined again.
func (r *Resolved) shown(k Keyword) []Value {
	switch {
	case k == ForwardAgent && r.set[forwardAgentPath] != nil:
		return []Value{*r.set[forwardAgentPath]}
	case !k.several() && r.set[k] != nil && r.set[k].Args == nil: // no list: see difference
		return nil
	}
	return r.all(k)
}

// IsSet reports whether a keyword was set by a file, a flag or ssh -G.
func (r *Resolved) IsSet(k Keyword) bool {
	v, ok := r.Get(k)
	return ok && v.Origin.Source != FromDefault
}

// Word returns the only word of a keyword, expanded where ssh expands it; "" = unset.
func (r *Resolved) Word(k Keyword) string {
	v, _ := r.Get(k)
	return v.word()
}

// Yes reports whether a keyword is set to yes.
func (r *Resolved) Yes(k Keyword) bool { return r.Word(k) == "yes" || r.Word(k) == "true" }

// Number returns the number of a keyword, 0 = none.
func (r *Resolved) Number(k Keyword) int {
	n, _ := strconv.Atoi(r.Word(k))
	return n
}

// List returns all words of a keyword. Without an installed ssh and without a setting the lists of
// algorithms are empty.
func (r *Resolved) List(k Keyword) []string {
	if r.set[k] == nil {
		return nil
	}
	return slices.Clone(r.set[k].Args)
}

// Files returns the files of a keyword such as UserKnownHostsFile, expanded; empty for "none".
func (r *Resolved) Files(k Keyword) []string {
	if files := r.List(k); len(files) != 1 || !strings.EqualFold(files[0], "none") {
		return files
	}
	return nil
}

// Duration reads seconds; "none" and unset are 0.
func (r *Resolved) Duration(k Keyword) time.Duration {
	return time.Duration(r.Number(k)) * time.Second
}

// Paths expands the files of a keyword that may be given several times, in order. Those that were
// not given by the user need not exist: see IsSet.
func (r *Resolved) Paths(k Keyword) ([]string, error) {
	var paths []string
	for _, v := range r.all(k) {
		if strings.EqualFold(v.word(), "none") {
			continue
		}
		path, err := r.conn.path(v.word())
		if err != nil {
			return nil, wrapError(v.Origin, fmt.Errorf("%s: %w", k, err))
		}
		paths = append(paths, path)
	}
	return paths, nil
}
