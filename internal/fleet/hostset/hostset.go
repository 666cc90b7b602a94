// Package hostset turns what people write for "these machines" into hosts, and
// many names back into one short text.
//
// The grammar is ClusterShell's (nodeset(1)): ranges node[001-100/2], several brackets in
// one name, the operators , ! & ^ from left to right, @group, and * for names that are
// known. Names may have a user and a port, as ssh(1) takes them.
//
//   - Expand gives the names of one text, in the order in which they are written and each
//     once; Fold makes one text of many names, which Expand reads back to the same ones.
//   - Ranges are the names of one text whose brackets another program reads in another way.
//   - Groups answer for @group: a GroupFile is the classic file of ClusterShell, Listing a
//     list made elsewhere, Sources several of them by name.
//   - Selection puts together all that somebody said: sets, files of hosts, sections of
//     them, exclusions.
//
// It promises bounds: a text that would give more than Options.Max names is refused before
// it costs memory, and a group that contains itself is an error. A mistake in a text is a
// *SyntaxError. It opens no files and reads no configuration: groups, histories and lists
// of names are handed in.
package hostset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/host"
)

// DefaultMax is how many names one expression may give, unless Options says otherwise: far above
// any fleet, far below what a mistyped range could ask for.
const DefaultMax = 1_000_000

// Options of an expansion. The zero value knows no groups and no names.
type Options struct {
	Max    int    // most names that one expression or group may give, and all of a Selection; 0 = DefaultMax
	Groups Groups // answers @group and @source:group; nil = there are none

	// Known lists the names that * and ? select from, such as the Host lines of ssh_config; nil =
	// only those of all groups.
	Known func() ([]string, error)

	// Complete fills in an inventory's data about a host that a Selection names, where the user
	// gave none; nil = there is no inventory. ErrLeftOut passes the host over.
	Complete func(*host.Host) error

	emptyGlobOK bool // a wildcard that selects nothing is not an error
}

// ErrLeftOut is the error of an Options.Complete about a host that is not to be selected.
var ErrLeftOut = errors.New("the host is left out")

func (o Options) max() int {
	if o.Max <= 0 {
		return DefaultMax
	}
	return o.Max
}

// SyntaxError is a text that is not a set expression.
type SyntaxError struct {
	Text   string // the operand or expression at fault
	Reason string // lower case, without the text
	Err    error  // ErrNoGroups, an error of a Brackets, or nil
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("host set %q: %s", e.Text, e.Reason) }
func (e *SyntaxError) Unwrap() error { return e.Err }

func syntaxError(text, format string, args ...any) error {
	return &SyntaxError{Text: text, Reason: fmt.Sprintf(format, args...)}
}

// Expand returns the names of an expression in the order they were written, each once, and none
// together with an error.
func Expand(text string, opt Options) ([]string, error) {
	opt.Max = opt.max()
	e := &evaluator{opt: opt, groups: map[string][]string{}, busy: map[string]bool{}}
	return e.expression(text)
}

// Members returns the hosts of all groups of a source, each once.
func Members(groups Groups, source string) ([]string, error) {
	all, err := groups.Names(source)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if source != "" {
		source += ":"
	}
	return Expand("@"+source+"*", Options{Groups: groups})
}

// isPlain reports whether a text uses nothing beyond a plain name.
func isPlain(text string) bool { return !strings.ContainsAny(text, "[],!&^@*? \t") }

// sortedCopy returns the names sorted and each once.
func sortedCopy(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
