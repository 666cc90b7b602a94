package hostset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Groups answers names that begin with @. The source is the text before the colon of @source:group,
// "" in @group.
type Groups interface {
	// Group returns the set expressions of a group. An error for an unknown group lists the known
	// ones.
	Group(source, name string) ([]string, error)
	// Names lists the groups of a source, for @* and @rack*.
	Names(source string) ([]string, error)
}

// ByteOrderMark is put before a text by editors of Windows. It has no meaning.
const ByteOrderMark = "\ufeff"

// maxLine bounds a line of a groups or hosts file, in bytes: a list of 100,000 names still fits.
const maxLine = 4 << 20

// GroupFile is a text file of groups, one a line, as ClusterShell's classic groups file: `name:
// set`. A name may come several times; the sets add up. Empty lines and lines beginning with # are
// ignored.
type GroupFile struct {
	name  string // of the file, for messages
	order []string
	sets  map[string][]string
}

var _ Groups = (*GroupFile)(nil)

// ReadGroups reads a groups file; name is used in messages only. The sets are checked when they are
// used.
func ReadGroups(r io.Reader, name string) (*GroupFile, error) {
	f := NewGroupFile(name)
	err := eachLine(r, name, func(_ int, line string) error {
		group, set, found := strings.Cut(line, ":")
		group = strings.TrimSpace(group)
		if !found || group == "" || !isPlain(group) {
			return fmt.Errorf("want `group: set`, such as `web: web[1-9]`")
		}
		f.Add(group, strings.TrimSpace(set))
		return nil
	})
	return f, err
}

// Add adds a set to a group, and makes the group if necessary.
func (f *GroupFile) Add(group, set string) {
	if _, ok := f.sets[group]; !ok {
		f.order = append(f.order, group)
	}
	f.sets[group] = append(f.sets[group], set)
}

// NewGroupFile returns a table of groups that came from the named file.
func NewGroupFile(name string) *GroupFile { return &GroupFile{name: name, sets: map[string][]string{}} }

// Join adds the groups of another file to those of f and returns f, or the other where f is nil.
func (f *GroupFile) Join(other *GroupFile) *GroupFile {
	if f == nil {
		return other
	}
	f.name += ", " + other.name
	for _, group := range other.order {
		for _, set := range other.sets[group] {
			f.Add(group, set)
		}
	}
	return f
}

// UnknownGroupError says that a source of groups does not have one.
type UnknownGroupError struct {
	Group string
	Where string   // files, or other places that were asked
	Known []string // names that there are
}

func (e *UnknownGroupError) Error() string {
	return fmt.Sprintf("group %q is not in %s, which has: %s", e.Group, e.Where, Some(e.Known))
}

// Group returns the sets of a group.
func (f *GroupFile) Group(source, group string) ([]string, error) {
	sets, ok := f.sets[group]
	if source != "" || !ok {
		return nil, &UnknownGroupError{group, f.name, f.order}
	}
	return sets, nil
}

// Names returns the groups in the order of the file.
func (f *GroupFile) Names(source string) ([]string, error) {
	if source != "" {
		return nil, fmt.Errorf("%s has no groups of source %q", f.name, source)
	}
	return slices.Clone(f.order), nil
}

// Sources joins several Groups by the name before the colon: "" answers plain @group, and "*" every
// source that has no entry of its own.
type Sources map[string]Groups

var _ Groups = Sources(nil)

// Also lets g answer for a source together with the present ones: sets of groups with the same name
// add up.
func (s Sources) Also(source string, g Groups) {
	if before := s[source]; before != nil {
		g = both{before, g, false}
	}
	s[source] = g
}

// Else lets g answer for a source if the present ones do not know a group.
func (s Sources) Else(source string, g Groups) {
	if before := s[source]; before != nil {
		g = both{before, g, true}
	}
	s[source] = g
}

// both is two Groups under one source.
type both struct {
	first, second Groups
	instead       bool // the second answers only for groups that the first does not know
}

// Group returns the group of either; it is unknown if both do not know it.
func (b both) Group(source, group string) ([]string, error) {
	one, err1 := b.first.Group(source, group)
	unknown1, not1 := errors.AsType[*UnknownGroupError](err1)
	if b.instead && !not1 {
		return one, err1
	}
	two, err2 := b.second.Group(source, group)
	unknown2, not2 := errors.AsType[*UnknownGroupError](err2)
	switch {
	case err1 != nil && !not1:
		return nil, err1
	case err2 != nil && !not2:
		return nil, err2
	case not1 && not2:
		return nil, &UnknownGroupError{group, unknown1.Where + ", " + unknown2.Where, sortedCopy(slices.Concat(unknown1.Known, unknown2.Known))}
	}
	return slices.Concat(one, two), nil
}

// Names lists the groups of both.
func (b both) Names(source string) ([]string, error) {
	one, err := b.first.Names(source)
	if err != nil {
		return nil, err
	}
	two, err := b.second.Names(source)
	return sortedCopy(slices.Concat(one, two)), err
}

// Group asks the source.
func (s Sources) Group(source, group string) ([]string, error) {
	g, name, err := s.source(source)
	if err != nil {
		return nil, err
	}
	return g.Group(name, group)
}

// Names asks the source.
func (s Sources) Names(source string) ([]string, error) {
	g, name, err := s.source(source)
	if err != nil {
		return nil, err
	}
	return g.Names(name)
}

// source returns the Groups that answer, and the name of the source to ask for.
func (s Sources) source(source string) (Groups, string, error) {
	if g := s[source]; g != nil {
		return g, "", nil
	}
	if source == "" {
		return nil, "", ErrNoGroups
	}
	if g := s["*"]; g != nil {
		return g, source, nil
	}
	var known []string
	for name := range s {
		if name != "" {
			known = append(known, "@"+name+":")
		}
	}
	return nil, "", fmt.Errorf("@%s: not a source of groups; known are: %s", source, Some(sortedCopy(known)))
}

// Listing is a source with the one group "all".
type Listing func() ([]string, error)

var _ Groups = Listing(nil)

// Group lists the names.
func (l Listing) Group(_, group string) ([]string, error) {
	if group != "all" {
		return nil, &UnknownGroupError{group, "this source", []string{"all"}}
	}
	return l()
}

// Names returns "all".
func (l Listing) Names(string) ([]string, error) { return []string{"all"}, nil }

// ErrNoGroups says that nothing answers for @group.
var ErrNoGroups = errors.New("no groups are defined")

// Some lists at most ten names, for messages.
func Some(list []string) string {
	switch {
	case len(list) == 0:
		return "none"
	case len(list) > 10:
		return strings.Join(list[:10], " ") + " ..."
	}
	return strings.Join(list, " ")
}

// eachLine calls use for every line that is neither empty nor a comment, with its number from 1 and
// without blanks around it. Errors name file and line.
func eachLine(r io.Reader, name string, use func(number int, line string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	number := 0
	for lines.Scan() {
		number++
		line := lines.Text()
		if number == 1 {
			line = strings.TrimPrefix(line, ByteOrderMark)
		}
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := use(number, line); err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", name, number+1, err)
	}
	return nil
}
