// Package tidy keeps known_hosts files in order: lint finds useless, misleading or unsafe lines,
// split makes files of one host each, pin keeps the key of a server whose address changes. It
// changes nothing without being asked, and accepts no key.
package tidy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
)

// patternsFile is the file in a split directory with the lines that belong to no single host, and
// all @cert-authority and @revoked lines: it is always written anew, so that a key that was revoked
// since is refused even if the file of its host is kept. A host file cannot have its name, since
// those never start with a dot.
const patternsFile = ".patterns"

// SplitOptions select the hosts that get a file, and how.
type SplitOptions struct {
	// Hosts are the hosts, by the name that ssh looks up: after HostName, or the HostKeyAlias. Nil
	// means every plain name in the files. Hashed lines can only be given to hosts that are named
	// here.
	Hosts []host.Host

	// Resolve returns the addresses of a host, each of which gets a file too if the files know it.
	// Nil means no addresses beyond the named ones. No address gets a key that was not recorded for
	// it.
	Resolve func(ctx context.Context, host string) ([]string, error)

	// Progress, if set, is called after every file, and Looking now and then while addresses are
	// looked up.
	Progress, Looking func(done, total int)

	// Force replaces existing host files that differ. Otherwise they are kept: they may hold keys
	// that ssh has learned since the last split.
	Force bool

	// KeepUnmatched adds to PatternsFile the host keys of no named host, such as hashed lines whose
	// name is unknown. They continue to cost time.
	KeepUnmatched bool
}

// SplitResult lists the changes. The slices of names are sorted.
type SplitResult struct {
	Dir        string   `json:"dir"`
	Written    int      `json:"written"`    // files that are new or replaced
	Unchanged  int      `json:"unchanged"`  // files that were as they should be
	Kept       []string `json:"kept"`       // files that differ and were kept
	Missing    []string `json:"missing"`    // named hosts without a line
	Unsafe     []string `json:"unsafe"`     // names that cannot be the name of a file, and why
	Unresolved []string `json:"unresolved"` // hosts whose addresses are unknown, with the reason
	Patterns   int      `json:"patterns"`   // lines in PatternsFile
	Unmatched  int      `json:"unmatched"`  // host key lines that are in no host file
	Unreadable int      `json:"unreadable"` // lines that ssh cannot read either
}

// Split writes one small file per host into dir, so that ssh reads only the lines of the host it
// connects to: see SplitConfig. The file of a host holds every line that ssh would find for it on
// any port, with the host field reduced to the one name, since a longer one keeps ssh from updating
// the file (clientloop.c:hostspec_is_complex), and without hashing, since the name of the file
// reveals the host anyway. The source files are only read.
//
// The files of the hosts are complete before the first address is looked up; those of addresses
// follow. Files are replaced atomically but not flushed to the disk one by one: after a power
// failure run it again.
func Split(ctx context.Context, x *index.Index, dir string, o SplitOptions) (SplitResult, error) {
	s := &splitter{x: x, tables: x.Tables(), options: o, result: SplitResult{Dir: dir}, ports: make(map[string][]string), written: make(map[string]bool)}
	s.result.Kept, s.result.Missing, s.result.Unsafe, s.result.Unresolved = []string{}, []string{}, []string{}, []string{}
	s.collectPorts()
	s.collectBad()
	targets := s.targets()
	err := s.put(ctx, dir, targets)
	if err == nil && o.Resolve != nil {
		if more := s.addressTargets(ctx, targets); len(more) > 0 || ctx.Err() != nil {
			err = s.put(ctx, dir, more)
		}
	}
	for _, names := range []*[]string{&s.result.Kept, &s.result.Missing, &s.result.Unsafe, &s.result.Unresolved} {
		slices.Sort(*names)
		*names = slices.Compact(*names) // an address may come in both rounds
	}
	s.count()
	return s.result, err
}

// put writes the files of some targets.
func (s *splitter) put(ctx context.Context, dir string, targets map[string][]string) error {
	s.warm(ctx, slices.Concat(slices.Collect(maps.Values(targets))...))
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.write(ctx, dir, targets)
}

// splitter is the work of one call of Split.
type splitter struct {
	x       *index.Index
	options SplitOptions
	tables  []*index.Table
	ports   map[string][]string // host -> the plain names that it has in the files
	result  SplitResult
	bad     []map[int]bool   // per table, the numbers of the lines that cannot be read
	used    []map[int32]bool // per table, the lines that went into a host file
	written map[string]bool  // names of files that are as this call made or found them
}

// collectPorts finds the names of every host, since the file of a host serves all of its ports:
// ssh_config's %h is the name without one.
func (s *splitter) collectPorts() {
	for _, t := range s.tables {
		for _, name := range t.Names() {
			host, _ := knownhosts.SplitHostPort(name)
			if !slices.Contains(s.ports[host], name) {
				s.ports[host] = append(s.ports[host], name)
			}
		}
	}
}

// collectBad decodes every key once.
func (s *splitter) collectBad() {
	for _, t := range s.tables {
		bad := make(map[int]bool)
		for _, line := range t.Unreadable() {
			bad[line.Line] = true
		}
		s.bad = append(s.bad, bad)
		s.used = append(s.used, make(map[int32]bool))
		s.result.Unreadable += len(bad)
	}
}

// targets maps the name of each file to the names to look up for it.
func (s *splitter) targets() map[string][]string {
	targets := make(map[string][]string)
	if s.options.Hosts == nil {
		for host := range s.ports {
			s.addTarget(targets, host, 0)
		}
	}
	for _, h := range s.options.Hosts {
		s.addTarget(targets, wildcard.Lower(h.Name), int(h.Port))
	}
	return targets
}

// addTarget names a host's file and the names to look up for it: the host itself, the requested
// port, and every port in the files.
func (s *splitter) addTarget(targets map[string][]string, host string, port int) {
	if err := CheckName(host); err != nil {
		s.result.Unsafe = append(s.result.Unsafe, err.Error())
		return
	}
	names := append(targets[host], host, knownhosts.HostPort(host, port))
	names = append(names, s.ports[host]...)
	targets[host] = sortNames(names)
}

// sortNames puts the name without a port first, then the others by number.
func sortNames(names []string) []string {
	order := func(name string) int {
		if !strings.HasPrefix(name, "[") {
			return 0
		}
		_, port := knownhosts.SplitHostPort(name)
		return port
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b))
	})
	return slices.Compact(names)
}

// addressTargets returns the addresses of targets that the files know, with the ports of their
// hosts.
func (s *splitter) addressTargets(ctx context.Context, targets map[string][]string) map[string][]string {
	type candidate struct {
		name    string // as in a file
		address string
		port    int
	}
	var candidates []candidate
	var names []string
	for _, a := range s.resolve(ctx, slices.DeleteFunc(slices.Sorted(maps.Keys(targets)), isAddress)) {
		for _, address := range a.addresses {
			for _, name := range targets[a.host] {
				_, port := knownhosts.SplitHostPort(name)
				c := candidate{knownhosts.HostPort(address, port), wildcard.Lower(address), port}
				candidates = append(candidates, c)
				names = append(names, c.name)
			}
		}
	}
	s.warm(ctx, names)
	found := make(map[string][]string)
	for _, c := range candidates {
		if s.knows(c.name) {
			if found[c.address] == nil {
				found[c.address] = slices.Clone(targets[c.address])
			}
			s.addTarget(found, c.address, c.port)
		}
	}
	maps.DeleteFunc(found, func(address string, names []string) bool { return slices.Equal(names, targets[address]) })
	return found
}

// isAddress reports whether host is an IP address, with or without a zone.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// warm tries the hashed lines of all files for names.
func (s *splitter) warm(ctx context.Context, names []string) {
	for _, t := range s.tables {
		t.Warm(ctx, names)
	}
}

// knows reports whether any file has a line for exactly this name; a pattern that happens to match
// is in PatternsFile anyway.
func (s *splitter) knows(name string) bool {
	return slices.ContainsFunc(s.tables, func(t *index.Table) bool {
		return slices.ContainsFunc(t.Find(name), func(i int32) bool { return !t.Lines()[i].Pattern })
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
	sched.Do(runtime.GOMAXPROCS(0), len(hosts), func(i int) { files[i] = s.buildHost(hosts[i], targets[hosts[i]]) })
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
		for _, found := range findAll(t, names) {
			l := t.Lines()[found.index]
			if s.bad[i][l.Number] {
				continue
			}
			f.lines[i] = append(f.lines[i], found.index)
			if !l.Pattern {
				l.Hosts = found.name
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

// findAll is Find for several names, in the order of the file.
func findAll(t *index.Table, names []string) []namedLine {
	var all []namedLine
	for _, name := range names {
		for _, i := range t.Find(name) {
			all = append(all, namedLine{i, name})
		}
	}
	slices.SortStableFunc(all, func(a, b namedLine) int { return cmp.Compare(a.index, b.index) })
	return all
}

// common yields the lines that do not belong to a single host file alone.
func (s *splitter) common() iter.Seq2[knownhosts.Line, bool] {
	return func(yield func(l knownhosts.Line, unmatched bool) bool) {
		for i, t := range s.tables {
			for at, l := range t.Lines() {
				unmatched := !l.Pattern && !s.used[i][int32(at)]
				marked := l.Marker != knownhosts.MarkerNone
				if !s.bad[i][l.Number] && (l.Pattern || marked || unmatched) && !yield(l, unmatched) {
					return
				}
			}
		}
	}
}

// shared reports whether such a line goes to PatternsFile.
func (s *splitter) shared(l knownhosts.Line, unmatched bool) bool {
	return !unmatched || l.Marker != knownhosts.MarkerNone || s.options.KeepUnmatched
}

// patterns returns the text of PatternsFile.
func (s *splitter) patterns() string {
	var text strings.Builder
	for l, unmatched := range s.common() {
		if s.shared(l, unmatched) {
			text.WriteString(l.String() + "\n")
		}
	}
	return text.String()
}

// count counts the lines that are in no host file.
func (s *splitter) count() {
	for l, unmatched := range s.common() {
		if unmatched && l.Marker == knownhosts.MarkerNone {
			s.result.Unmatched++
		}
		if s.shared(l, unmatched) {
			s.result.Patterns++
		}
	}
}

// SplitConfig returns the part of ssh_config that makes ssh use a split directory.
//
// The token is %h, the name after HostName and in lower case, under which ssh looks keys up; it has
// no port, so that the file of a host serves all of its ports. %k is the HostKeyAlias where there
// is one, but otherwise the typed name, which is neither the looked-up name nor lower-case. Giving
// both is worse than either: where they are the same file, UpdateHostKeys writes the keys into the
// first and then deletes them from the second. A UserKnownHostsFile turns UpdateHostKeys off unless
// it is set.
//
// A typed name with a HostKeyAlias (aliases maps one to the other) gets its own block, since the
// key is looked up under the alias.
func SplitConfig(dir string, aliases map[string]string) (string, error) {
	path, err := ConfigPath(dir)
	if err != nil {
		return "", err
	}
	files := func(name string) string {
		return conf.Quote(path+"/"+name) + " " + conf.Quote(path+"/"+patternsFile)
	}
	var text strings.Builder
	text.WriteString("# One known_hosts file per host. ssh takes the first value it finds, so put this\n" +
		"# above other UserKnownHostsFile lines. For a host with HostKeyAlias, copy the\n" +
		"# last block to the top of these lines, with the alias instead of %h.\n")
	for _, typed := range slices.Sorted(maps.Keys(aliases)) {
		alias := wildcard.Lower(aliases[typed])
		if err := errors.Join(CheckName(alias), CheckName(wildcard.Lower(typed))); err != nil {
			return "", err
		}
		text.WriteString(block(typed, files(strings.ReplaceAll(alias, "%", "%%"))))
	}
	text.WriteString(block("*", files("%h")))
	return text.String(), nil
}

func block(host, files string) string {
	return fmt.Sprintf("Host %s\n    UserKnownHostsFile %s\n    UpdateHostKeys yes\n    HashKnownHosts no\n", host, files)
}
