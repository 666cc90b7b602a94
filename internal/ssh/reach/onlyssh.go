package reach

import (
	"slices"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/dial"
)

// server is one, whatever user and jump hosts lead to it.
type server struct {
	name string
	port int
}

func serverOf(t *dial.Target) server { return server{t.HostName, t.Port} }

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
