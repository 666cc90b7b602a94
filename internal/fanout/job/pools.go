package job

import (
	"fmt"
	"io"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet/hostset"
)

// Pools has the pools of hosts, by their names.
type Pools map[string][]string

// ReadPools reads lines such as `web: web[1-20],@web`; name is that of the file, for messages.
func ReadPools(r io.Reader, name string, groups hostset.Groups) (Pools, error) {
	lines, err := hostset.ReadGroups(r, name)
	if err != nil {
		return nil, err
	}
	p := Pools{}
	pools, _ := lines.Names("") // of a file there are
	for _, pool := range pools {
		if err := CheckName("pool", pool); err != nil {
			return nil, err
		}
		sets, _ := lines.Group("", pool)
		seen := map[string]bool{}
		for _, set := range sets {
			names, err := hostset.Expand(set, hostset.Options{Groups: groups})
			if err != nil {
				return nil, fmt.Errorf("%s: pool %s: %w", name, pool, err)
			}
			for _, text := range names {
				h, err := host.Parse(text)
				if err != nil {
					return nil, fmt.Errorf("%s: pool %s: %w", name, pool, err)
				}
				if !seen[h.Name] {
					seen[h.Name] = true
					p[h.Name] = append(p[h.Name], pool)
				}
			}
		}
	}
	return p, nil
}

// Check makes sure that each host is in one pool.
func (p Pools) Check(hosts []host.Host, name string) error {
	for _, h := range hosts {
		switch of := p[h.Name]; len(of) {
		case 0:
			return fault.Usage("add it to one of them", "%s is in no pool of %s", h, name)
		case 1:
		default:
			return fault.Usage("leave it out of all but one", "%s is in several pools of %s: %s and %s", h, name, of[0], of[1])
		}
	}
	return nil
}

// Of returns the pool of a host, as Check has seen it.
func (p Pools) Of(h host.Host) string { return p[h.Name][0] }
