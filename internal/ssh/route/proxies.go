package route

import (
	"context"
	"path/filepath"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// refuseLoops refuses a host whose ProxyCommand starts ssh for a host that leads back, or through
// more hosts than anybody has: each ssh would start the next, without end.
func (r *Router) refuseLoops(ctx context.Context, c *conf.Resolved) error {
	path := []string{c.Name}
	for at, more := r.before(c); more; at, more = r.before(c) {
		if path = append(path, at.Name); len(path) > maxJumps+2 {
			return &jumpsError{path, conf.ProxyCommand}
		}
		var err error
		if c, err = r.jump(ctx, at); err != nil {
			return nil // the ssh that goes there reports it
		}
	}
	return nil
}

// before returns the last host that ssh goes through before c; false if there is none.
func (r *Router) before(c *conf.Resolved) (host.Endpoint, bool) {
	if jumps := c.ProxyJump(); len(jumps) > 0 {
		return jumps[len(jumps)-1], true
	}
	command, err := c.ProxyCommand()
	if err != nil {
		return host.Endpoint{}, false
	}
	return throughSSH(command, r.params.Flags.Config)
}

// throughSSH returns the host of a proxy command of the usual form, "ssh -W %h:%p host", under the
// same configuration file; false for any other command.
func throughSSH(command, config string) (host.Endpoint, bool) {
	words := strings.Fields(command)
	if len(words) > 0 && words[0] == "exec" {
		words = words[1:]
	}
	if len(words) == 0 || filepath.Base(words[0]) != "ssh" {
		return host.Endpoint{}, false
	}
	for words = words[1:]; len(words) > 0; words = words[1:] {
		word := strings.Trim(words[0], `"'`)
		if !strings.HasPrefix(word, "-") {
			h, err := host.Parse(word)
			return h.Asked(), err == nil
		}
		i := strings.IndexAny(word, openssh.WithValue)
		if i < 0 {
			continue
		}
		value := word[i+1:]
		if value == "" && len(words) > 1 {
			words = words[1:]
			value = strings.Trim(words[0], `"'`)
		}
		if word[i] == 'F' && value != config {
			break
		}
	}
	return host.Endpoint{}, false
}
