package copy

import (
	"errors"
	"io/fs"
	"slices"
	"sync"

	"sshpace/internal/base/host"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/fanout/expand"
)

// Sources are the files for the hosts, each scanned once. Their names have tokens.
type Sources struct {
	Naming  Naming
	Exclude wildcard.Paths
	Mode    fs.FileMode // of all files; 0: as here
	names   []string
	mu      sync.Mutex
	scanned map[string]func() (*Source, error)
}

// NewSources returns files, directories and links of these names.
func NewSources(names []string) *Sources {
	return &Sources{names: names, scanned: map[string]func() (*Source, error){}}
}

// Check scans the files for all hosts before any connection, as far as the names are the same for
// all, and returns the skipped ones.
func (s *Sources) Check() (left []string, err error) {
	varies := func(n string) bool {
		return expand.Name(n, "x") != expand.Name(n, "y") || s.Naming != nil && expand.Varies(n)
	}
	if slices.ContainsFunc(s.names, varies) {
		return nil, nil
	}
	list, err := s.Of(host.Host{})
	for _, source := range list {
		left = append(left, source.Left...)
	}
	return left, err
}

// Of returns the files for one host.
func (s *Sources) Of(h host.Host) ([]*Source, error) {
	var list []*Source
	for _, name := range s.names {
		name = s.Naming.of(name, h)
		s.mu.Lock()
		scan := s.scanned[name]
		if scan == nil {
			scan = sync.OnceValues(func() (*Source, error) { return s.scan(name) })
			s.scanned[name] = scan
		}
		s.mu.Unlock()
		source, err := scan()
		if err != nil {
			return nil, err
		}
		if len(source.items) > 0 {
			list = append(list, source)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("--exclude leaves nothing to copy")
	}
	return list, nil
}

// scan lists the files of one name.
func (s *Sources) scan(name string) (*Source, error) {
	source, err := scanWithout(s.Exclude, name, nil)
	if err != nil || s.Mode == 0 {
		return source, err
	}
	for _, it := range source.items {
		if it.kind == 0 {
			it.perm = s.Mode
		}
	}
	return source, nil
}
