package knownhosts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"sshpace/internal/base/host"
)

// PatternsFile is the file in a split directory that holds what belongs to no
// single host: patterns, @cert-authority and @revoked lines. A host file cannot
// have its name, since those never start with a dot.
const PatternsFile = ".patterns"

// SplitOptions says which hosts get a file, and how.
type SplitOptions struct {
	// Hosts are the hosts, by the name that ssh looks up: after HostName, or the
	// HostKeyAlias. Nil means every plain name in the files. Hashed lines can
	// only be given to hosts that are named here.
	Hosts []host.Host

	// Resolve returns the addresses of a host, each of which gets a file too if
	// the files know it. Nil means no addresses beyond those named. No address
	// gets a key that was not recorded for it.
	Resolve func(ctx context.Context, host string) ([]string, error)

	// Progress, if set, is called after every file.
	Progress func(done, total int)

	// Force replaces host files that exist and differ. Otherwise they are kept:
	// they may hold keys that ssh has learned since the last split.
	Force bool

	// KeepUnmatched adds to PatternsFile the host keys of no named host, such as
	// hashed lines whose name is not known. They go on to cost time.
	KeepUnmatched bool
}

// SplitResult is what Split did. The slices of names are sorted.
type SplitResult struct {
	Dir        string   `json:"dir"`
	Written    int      `json:"written"`    // files that are new or replaced
	Unchanged  int      `json:"unchanged"`  // files that were as they should be
	Kept       []string `json:"kept"`       // files that differ and were kept
	Missing    []string `json:"missing"`    // named hosts without a line
	Unsafe     []string `json:"unsafe"`     // names that cannot be the name of a file, and why
	Unresolved []string `json:"unresolved"` // hosts without an address, and why
	Patterns   int      `json:"patterns"`   // lines in PatternsFile
	Unmatched  int      `json:"unmatched"`  // host key lines that are in no host file
	Unreadable int      `json:"unreadable"` // lines that ssh cannot read either
}

// Split writes one small file per host into dir, so that ssh reads only what
// concerns the host it connects to: see SplitConfig. The file of a host holds
// every line that ssh would find for it on any port, with the host field cut
// down to the one name, since a longer one keeps ssh from updating the file
// (clientloop.c:hostspec_is_complex), and without hashing, since the name of the
// file tells the host anyway. The source files are only read.
//
// Files are replaced atomically but not flushed to the disk one by one: after a
// power failure run it again.
func Split(ctx context.Context, x *Index, dir string, o SplitOptions) (SplitResult, error) {
	s := &splitter{x: x, options: o, result: SplitResult{Dir: dir}, ports: make(map[string][]string)}
	s.result.Kept, s.result.Missing, s.result.Unsafe, s.result.Unresolved = []string{}, []string{}, []string{}, []string{}
	for _, src := range x.files {
		s.tables = append(s.tables, src.current())
	}
	s.collectPorts()
	s.collectBad()
	targets := s.targets(ctx)
	s.warm(ctx, slices.Concat(slices.Collect(maps.Values(targets))...))
	if err := ctx.Err(); err != nil {
		return s.result, err
	}
	return s.result, s.write(ctx, dir, targets)
}

// splitter is the work of one Split.
type splitter struct {
	x       *Index
	options SplitOptions
	tables  []*table
	ports   map[string][]string // host -> the plain names that it has in the files
	result  SplitResult
	bad     []map[int]bool   // per table, the numbers of the lines that cannot be read
	used    []map[int32]bool // per table, the lines that went into a host file
}

// collectPorts finds the names of every host, since the file of a host serves
// all of its ports: ssh_config's %h is the name without one.
func (s *splitter) collectPorts() {
	for _, t := range s.tables {
		for name := range t.plain {
			host, _ := SplitHostPort(name)
			if !slices.Contains(s.ports[host], name) {
				s.ports[host] = append(s.ports[host], name)
			}
		}
	}
}

// collectBad decodes every key once.
func (s *splitter) collectBad() {
	for i, t := range s.tables {
		bad := make(map[int]bool)
		for _, line := range t.unreadable(s.x.files[i].path) {
			bad[line.Line] = true
		}
		s.bad = append(s.bad, bad)
		s.used = append(s.used, make(map[int32]bool))
		s.result.Unreadable += len(bad)
	}
}

// targets maps the name of each file to the names to look up for it.
func (s *splitter) targets(ctx context.Context) map[string][]string {
	targets := make(map[string][]string)
	if s.options.Hosts == nil {
		for host := range s.ports {
			s.addTarget(targets, host, 0)
		}
	}
	for _, h := range s.options.Hosts {
		s.addTarget(targets, lower(h.Name), int(h.Port))
	}
	s.addAddresses(ctx, targets)
	slices.Sort(s.result.Unsafe)
	return targets
}

// addTarget names a host's file and what to look up for it: the host itself,
// the port that was asked for, and every port that stands in the files.
func (s *splitter) addTarget(targets map[string][]string, host string, port int) {
	if err := safeFileName(host); err != nil {
		s.result.Unsafe = append(s.result.Unsafe, err.Error())
		return
	}
	names := append(targets[host], host, HostPort(host, port))
	names = append(names, s.ports[host]...)
	targets[host] = sortNames(names)
}

// sortNames puts the name without a port first, then the others by number.
func sortNames(names []string) []string {
	order := func(name string) int {
		if !strings.HasPrefix(name, "[") {
			return 0
		}
		_, port := SplitHostPort(name)
		return port
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b))
	})
	return slices.Compact(names)
}

// addAddresses makes targets of the addresses that the files know, with the
// ports of their hosts.
func (s *splitter) addAddresses(ctx context.Context, targets map[string][]string) {
	if s.options.Resolve == nil {
		return
	}
	type candidate struct {
		name    string // as it would stand in a file
		address string
		port    int
	}
	var candidates []candidate
	var names []string
	for _, a := range s.resolve(ctx, slices.DeleteFunc(slices.Sorted(maps.Keys(targets)), isAddress)) {
		for _, address := range a.addresses {
			for _, name := range targets[a.host] {
				_, port := SplitHostPort(name)
				c := candidate{HostPort(address, port), lower(address), port}
				candidates = append(candidates, c)
				names = append(names, c.name)
			}
		}
	}
	s.warm(ctx, names)
	for _, c := range candidates {
		if s.knows(c.name) {
			s.addTarget(targets, c.address, c.port)
		}
	}
}

// resolved is what the resolver said of one host.
type resolved struct {
	host      string
	addresses []string
}

// resolve asks for all hosts, a few at a time, and notes the failures.
func (s *splitter) resolve(ctx context.Context, hosts []string) []resolved {
	const atOnce = 32
	answers := make([]resolved, len(hosts))
	failures := make([]error, len(hosts))
	parallel(atOnce, len(hosts), func(i int) {
		answers[i].host = hosts[i]
		answers[i].addresses, failures[i] = s.options.Resolve(ctx, hosts[i])
	})
	for i, err := range failures {
		if err != nil {
			s.result.Unresolved = append(s.result.Unresolved, fmt.Sprintf("%s: %v", hosts[i], err))
		}
	}
	return answers
}

// warm tries the hashed lines of all files for names.
func (s *splitter) warm(ctx context.Context, names []string) {
	for _, t := range s.tables {
		t.warm(ctx, names)
	}
}

// knows reports whether any file has a line for this very name; a pattern that
// happens to match is in PatternsFile anyway.
func (s *splitter) knows(name string) bool {
	return slices.ContainsFunc(s.tables, func(t *table) bool {
		return slices.ContainsFunc(t.find(name), func(index int32) bool { return !t.lines[index].pattern })
	})
}

// hostFile is the file of one host before it is written.
type hostFile struct {
	host  string
	text  string    // empty if no line matches
	lines [][]int32 // per table, the lines in it
}

// build makes the files of all targets, sorted by name.
func (s *splitter) build(targets map[string][]string) []hostFile {
	hosts := slices.Sorted(maps.Keys(targets))
	files := make([]hostFile, len(hosts))
	parallel(runtime.GOMAXPROCS(0), len(hosts), func(i int) { files[i] = s.buildHost(hosts[i], targets[hosts[i]]) })
	for _, f := range files {
		for i, lines := range f.lines {
			for _, index := range lines {
				s.used[i][index] = true
			}
		}
	}
	return files
}

// buildHost makes the file of one host, in the order of the source.
func (s *splitter) buildHost(host string, names []string) hostFile {
	f := hostFile{host: host, lines: make([][]int32, len(s.tables))}
	var text strings.Builder
	for i, t := range s.tables {
		seen := make(map[string]bool)
		for _, found := range t.findAll(names) {
			l := t.lines[found.index]
			if s.bad[i][l.number] {
				continue
			}
			f.lines[i] = append(f.lines[i], found.index)
			if !l.pattern {
				l.hosts = found.name
			}
			if one := l.String(); !seen[one] {
				seen[one] = true
				text.WriteString(one)
				text.WriteByte('\n')
			}
		}
	}
	f.text = text.String()
	return f
}

// namedLine is a line and the name for which it was found.
type namedLine struct {
	index int32
	name  string
}

// findAll is find for several names, in the order of the file.
func (t *table) findAll(names []string) []namedLine {
	var all []namedLine
	for _, name := range names {
		for _, index := range t.find(name) {
			all = append(all, namedLine{index, name})
		}
	}
	slices.SortStableFunc(all, func(a, b namedLine) int { return cmp.Compare(a.index, b.index) })
	return all
}

// patterns is the text of PatternsFile. It counts the lines that are in no file.
func (s *splitter) patterns() string {
	var text strings.Builder
	for i, t := range s.tables {
		for index, l := range t.lines {
			if s.bad[i][l.number] {
				continue
			}
			unmatched := !l.pattern && !s.used[i][int32(index)]
			if unmatched && l.marker == MarkerNone {
				s.result.Unmatched++
			}
			if l.pattern || unmatched && (l.marker != MarkerNone || s.options.KeepUnmatched) {
				text.WriteString(l.String() + "\n")
				s.result.Patterns++
			}
		}
	}
	return text.String()
}
