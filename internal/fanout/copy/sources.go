package copy

import (
	"slices"
	"sync"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
)

// Sources are what the hosts get, each scanned once. In a name %h is the host's.
type Sources struct {
	names   []string
	mu      sync.Mutex
	scanned map[string]func() (*Source, error)
}

// NewSources are files, folders and links of these names.
func NewSources(names []string) *Sources {
	return &Sources{names: names, scanned: map[string]func() (*Source, error){}}
}

// Check scans what all hosts get before any is connected to, as far as the names
// are the same for all, and returns what is left out of it.
func (s *Sources) Check() (left []string, err error) {
	if slices.ContainsFunc(s.names, func(n string) bool { return fanout.ForHost(n, "x") != fanout.ForHost(n, "y") }) {
		return nil, nil
	}
	list, err := s.Of(host.Host{})
	for _, source := range list {
		left = append(left, source.Left...)
	}
	return left, err
}

// Of is what one host gets.
func (s *Sources) Of(h host.Host) ([]*Source, error) {
	var list []*Source
	for _, name := range s.names {
		name = fanout.ForHost(name, h.Name)
		s.mu.Lock()
		scan := s.scanned[name]
		if scan == nil {
			scan = sync.OnceValues(func() (*Source, error) { return Scan(name, nil) })
			s.scanned[name] = scan
		}
		s.mu.Unlock()
		source, err := scan()
		if err != nil {
			return nil, err
		}
		list = append(list, source)
	}
	return list, nil
}
