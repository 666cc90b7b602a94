package hostset

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sshpace/internal/base/host"
)

// HostsFile is a list of hosts, one or more a line: `user@host:port`, `ssh://user@host:port`,
// `host:port user` as in pssh's files, or any set expression. A line `%label` begins a section; `%`
// alone ends it. # begins a comment, at the start of a line or after a blank.
type HostsFile struct {
	name    string
	entries []entry
}

// entry is one line that names hosts.
type entry struct {
	text, label string
	line        int
}

// ReadHosts reads a hosts file; name is used in messages only. The lines are checked when they are
// used.
func ReadHosts(r io.Reader, name string) (*HostsFile, error) { return readLines(r, name, userFirst) }

// ReadSets is ReadHosts where two words are always two sets, as nodeset(1) reads its standard
// input.
func ReadSets(r io.Reader, name string) (*HostsFile, error) {
	return readLines(r, name, func(line string) string { return line })
}

func readLines(r io.Reader, name string, text func(line string) string) (*HostsFile, error) {
	f := &HostsFile{name: name}
	label := ""
	err := eachLine(r, name, func(number int, line string) error {
		if rest, ok := strings.CutPrefix(line, "%"); ok {
			label = strings.TrimSpace(rest)
			return nil
		}
		f.entries = append(f.entries, entry{text: text(stripComment(line)), label: label, line: number})
		return nil
	})
	return f, err
}

const (
	digits     = "0123456789"
	loginRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-" + digits
)

// userFirst writes the line `host user` of pssh's files as user@host. Two plain names of which the
// second has a number, such as `web1 web2`, are two hosts; after an address or a name with a domain
// the second is a user all the same.
func userFirst(line string) string {
	words := strings.Fields(line)
	if len(words) != 2 || strings.ContainsAny(words[0], operators+"@*?") || strings.Trim(words[1], loginRunes) != "" {
		return line
	}
	if !strings.ContainsAny(words[0], ".:") && strings.ContainsAny(words[1], digits) {
		return line
	}
	return words[1] + "@" + words[0]
}

func stripComment(line string) string {
	for i := 1; i < len(line); i++ {
		if line[i] == '#' && (line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}

// labels lists the sections in the order of the file, each once.
func (f *HostsFile) labels() []string {
	var labels []string
	for _, e := range f.entries {
		if e.label != "" && !slices.Contains(labels, e.label) {
			labels = append(labels, e.label)
		}
	}
	return labels
}

// Selection holds all that the user said about the hosts to use.
type Selection struct {
	Sets    []string     // set expressions (-w)
	Files   []*HostsFile // all hosts of these files, or of their sections Labels
	Labels  []string     // empty = all sections
	Exclude []string     // set expressions (-x); a name without user and port excludes all hosts of that name
	Steps   []Step       // further operations, in order
	EmptyOK bool         // an empty selection is not an error
	Options Options
}

// Hosts returns the selected hosts in the order they were named, each target once. It is an error
// if a label does not occur or nothing is left.
func (s Selection) Hosts() ([]host.Host, error) {
	if err := s.checkLabels(); err != nil {
		return nil, err
	}
	c := newCollector(s.Options)
	for _, set := range s.Sets {
		if err := c.add(set, host.Host{Origin: "-w"}, s.Options); err != nil {
			return nil, err
		}
	}
	for _, f := range s.Files {
		if err := s.addFile(c, f); err != nil {
			return nil, err
		}
	}
	steps := s.Steps
	if len(s.Exclude) > 0 {
		steps = append([]Step{{Op: '!', Sets: s.Exclude, Flag: "-x"}}, steps...)
	}
	hosts, err := c.hosts, error(nil)
	for _, step := range steps {
		if hosts, err = s.apply(step, hosts); err != nil {
			return nil, fmt.Errorf("%s: %w", step.Flag, err)
		}
	}
	if len(hosts) == 0 && !s.EmptyOK {
		err = errors.New("no hosts are named")
		if len(c.hosts) > 0 {
			err = fmt.Errorf("no hosts: all %d are excluded", len(c.hosts))
		}
	}
	return hosts, err
}

// checkLabels refuses a label that no file has: a typing error would otherwise run on nothing.
func (s Selection) checkLabels() error {
	var known []string
	for _, f := range s.Files {
		known = append(known, f.labels()...)
	}
	for _, label := range s.Labels {
		if !slices.Contains(known, label) {
			return fmt.Errorf("no hosts file has the label %q; labels are: %s", label, Some(sortedCopy(known)))
		}
	}
	return nil
}

func (s Selection) addFile(c *collector, f *HostsFile) error {
	for _, e := range f.entries {
		if len(s.Labels) > 0 && !slices.Contains(s.Labels, e.label) {
			continue
		}
		origin := fmt.Sprintf("%s:%d", f.name, e.line)
		if err := c.add(e.text, host.Host{Label: e.label, Origin: origin}, s.Options); err != nil {
			return fmt.Errorf("%s: %w", origin, err)
		}
	}
	return nil
}

// Step is an operation on the hosts selected so far.
type Step struct {
	Op   byte     // ! without, & only, ^ those of exactly one side
	Sets []string // sets whose union is the right side
	Flag string   // for messages, such as "-x"
}

// apply carries out a step. Its wildcards select from the hosts themselves, and one that selects
// none is not a mistake.
func (s Selection) apply(step Step, hosts []host.Host) ([]host.Host, error) {
	opt := s.Options
	opt.emptyGlobOK = true
	opt.Known = func() ([]string, error) {
		var names []string
		for _, h := range hosts {
			names = append(names, h.Name)
		}
		return sortedCopy(names), nil
	}
	c := newCollector(opt)
	for _, set := range step.Sets {
		if err := c.add(set, host.Host{Origin: step.Flag}, opt); err != nil {
			return nil, err
		}
	}
	matched := map[string]bool{} // names
	kept := slices.DeleteFunc(slices.Clone(hosts), func(h host.Host) bool {
		in := c.seen[h.Endpoint()] || c.seen[host.Endpoint{Name: h.Name}]
		matched[h.Name] = matched[h.Name] || in
		return in != (step.Op == '&')
	})
	if step.Op == '^' {
		kept = append(kept, slices.DeleteFunc(c.hosts, func(h host.Host) bool { return matched[h.Name] })...)
	}
	return kept, nil
}

// collector gathers hosts, each target once. All sets together have the limit of one set: many
// lines must not cost more than one.
type collector struct {
	hosts []host.Host
	seen  map[host.Endpoint]bool
	left  int // names that may still come
	max   int
}

func newCollector(opt Options) *collector {
	return &collector{seen: map[host.Endpoint]bool{}, left: opt.max(), max: opt.max()}
}

// add expands a set; the hosts take label and origin of like.
func (c *collector) add(set string, like host.Host, opt Options) error {
	names, err := Expand(set, opt)
	if err != nil {
		return err
	}
	for _, name := range names {
		if c.left--; c.left < 0 {
			return syntaxError(set, "with the sets before it, more than %d names", c.max)
		}
		h, err := host.Parse(name)
		if err != nil {
			return err
		}
		typed := h.Endpoint()
		if opt.Complete != nil {
			if err := opt.Complete(&h); errors.Is(err, ErrLeftOut) {
				continue
			} else if err != nil {
				return err
			}
		}
		if c.seen[h.Endpoint()] {
			continue
		}
		c.seen[h.Endpoint()], c.seen[typed] = true, true
		h.Label, h.Origin = like.Label, like.Origin
		c.hosts = append(c.hosts, h)
	}
	return nil
}
