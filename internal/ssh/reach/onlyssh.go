package reach

import (
	"slices"
	"sync"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/dial"
)

// servers are some of those of a run, whatever user and jump hosts lead to them.
type servers struct{ known sync.Map }

type serverKey struct {
	name string
	port int
}

func (s *servers) add(t *dial.Target) { s.known.Store(serverKey{t.HostName, t.Port}, true) }

func (s *servers) has(t *dial.Target) bool {
	_, ok := s.known.Load(serverKey{t.HostName, t.Port})
	return ok
}

// compressions are what ssh offers whatever Compression says.
var compressions = []string{"none", "zlib@openssh.com", "zlib"}

// sshMay tells whether ssh can reach a host with which, or with a jump host of which, the
// native engine had no algorithm in common: it offers one that the server has. Nothing
// was asked for then, so nothing has run. Where no ssh is installed the hint says so.
func (e *Executor) sshMay(p *hostPlan, o *fleet.Outcome) bool {
	keyword, theirs, ok := dial.Unmatched(o.Cause)
	if !ok || o.Ran != fleet.RanNo {
		return false
	}
	if !e.HasSSH() {
		o.Hint = "install the OpenSSH client, which may know more algorithms: it is used for such a host without being asked for"
		return false
	}
	k, _ := conf.KeywordOf(keyword)
	return slices.ContainsFunc(p.Hops(), func(c *conf.Resolved) bool {
		offered := e.Allowed(c, k)
		if k == conf.Compression {
			offered = compressions
		}
		return slices.ContainsFunc(offered, func(name string) bool { return slices.Contains(theirs, name) })
	})
}
