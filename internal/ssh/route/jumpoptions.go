package route

import (
	"context"
	"slices"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/openssh"
)

// ThroughJumps leads ssh to a host of the user's through the jump hosts that its
// configuration and flags name, if any, each with keys as strict as the host's
// own, and refuses those that go in a circle before anything is started. env is
// what ssh needs in its environment for that.
func ThroughJumps(ctx context.Context, p Params, ssh openssh.Program, d openssh.Destination, connect time.Duration) (_ openssh.Destination, env []string, err error) {
	h, err := host.Parse(d.Label)
	if err != nil {
		return d, nil, err
	}
	r, err := New(ctx, p)
	if err != nil {
		return d, nil, err
	}
	found, err := r.Route(ctx, h)
	if err != nil {
		return d, nil, ResolveError(err, h.Name)
	}
	through, env := r.ThroughJumps(found, ssh, d, connect)
	return through, env, nil
}

// ThroughJumps leads ssh through the jump hosts of a route, with keys as strict as
// the host's own. env is what ssh needs in its environment for that.
func (r *Router) ThroughJumps(found *Route, ssh openssh.Program, d openssh.Destination, connect time.Duration) (_ openssh.Destination, env []string) {
	if len(found.Jumps) == 0 {
		return d, nil
	}
	jumps := r.SSHJumps(found)
	for i := range jumps {
		jumps[i].AcceptNew = false
	}
	// As with the host itself: a master may have been opened under other rules.
	options := []string{"-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", openssh.ConnectTimeout(connect)}
	if r.params.Connection.Config != "" {
		options = append(options, "-F", r.params.Connection.Config)
	}
	proxy, env := openssh.JumpOptions(ssh.Path, jumps, options)
	d.Options = append(proxy, withoutJump(d.Options)...)
	return d, env
}

// withoutJump leaves out -J, which ssh does not take together with a
// ProxyCommand.
func withoutJump(options []string) []string {
	i := slices.Index(options, "-J")
	if i < 0 {
		return options
	}
	return slices.Delete(slices.Clone(options), i, i+2)
}
