// Package route finds out how hosts are reached: their ssh_config, the jump hosts before them, and
// the engine. It connects to nobody.
package route

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/sys/safedir"
)

// Params select the configuration.
type Params struct {
	Flags conf.Flags
	// ConnectTimeout is the value of the flag; 0: as configured, otherwise the default.
	ConnectTimeout time.Duration

	Command   string    // for "Match command"
	AcceptNew bool      // trust and record keys of hosts that are not known yet
	Strict    bool      // do neither, even if ssh_config says so
	Warnings  io.Writer // nil = none are written
	Getenv    func(string) string
	Stderr    io.Writer // of the commands of "Match exec" and KnownHostsCommand
}

// Warn prints warnings for the user.
func (p Params) Warn(texts ...string) {
	for _, text := range texts {
		if p.Warnings != nil {
			fmt.Fprintln(p.Warnings, "sshpace: warning: "+termsafe.Line(text))
		}
	}
}

// Router finds the routes to hosts. It starts only the commands of ssh_config itself, and the
// installed ssh for its own lists and defaults.
type Router struct {
	Can conf.Capabilities // of the native engine

	hosts   *files
	jumps   func() (*files, error) // without the user's flags, as ssh -J has it
	lists   func() (map[conf.Keyword][]string, error)
	offers  func() map[conf.Keyword][]string // to hosts that set no lists, see Offered
	params  Params
	laxness sync.Once
}

// New reads the configuration under the flags of a command.
func New(ctx context.Context, p Params) (*Router, error) {
	system, err := p.system()
	if err != nil {
		return nil, err
	}
	system.Exec = onceEach(system.Exec)
	params := conf.Params{Flags: p.Flags, Command: p.Command, System: system}
	ssh := installedSSH()
	hosts, err := newFiles(ctx, params, ssh)
	if err != nil {
		return nil, ConfigError(err)
	}
	p.Warn(hosts.quick.Warnings()...)
	r := &Router{
		hosts: hosts, params: p, Can: nativeCapabilities(),
		jumps: sync.OnceValues(func() (*files, error) {
			return newFiles(ctx, conf.Params{Flags: conf.Flags{Config: p.Flags.Config}, System: system}, ssh)
		}),
		lists: sync.OnceValues(func() (map[conf.Keyword][]string, error) {
			return conf.AskLists(context.WithoutCancel(ctx), ssh.itself)
		}),
	}
	r.offers = sync.OnceValue(r.usualOffers)
	return r, nil
}

// Allowed returns the algorithms of a kind that ssh would offer to a host, in its order: as
// configured, otherwise the installed ssh's own list, which is asked for once a run. Without an ssh
// to compare with it is the secure ones, or nil: all secure ones.
func (r *Router) Allowed(c *conf.Resolved, k conf.Keyword) []string {
	if c.IsSet(k) {
		return append([]string{}, c.List(k)...)
	}
	return r.usual(k)
}

// usual is the list for hosts that set none.
func (r *Router) usual(k conf.Keyword) []string {
	lists, err := r.lists()
	if err != nil {
		lists = secureLists()
	}
	return lists[k]
}

// Offered returns the native engine's part of that: never more than ssh would offer. A list that
// somebody has set keeps its order, and so do host keys, whose order depends on the known ones; for
// others the native engine's order is used.
func (r *Router) Offered(c *conf.Resolved, k conf.Keyword) []string {
	if c.IsSet(k) {
		return r.possible(k, r.Allowed(c, k), true)
	}
	return r.offers()[k]
}

// usualOffers returns the lists for hosts that set none: the same for all of them.
func (r *Router) usualOffers() map[conf.Keyword][]string {
	offers := make(map[conf.Keyword][]string)
	for _, k := range conf.AlgorithmLists {
		offers[k] = r.possible(k, r.usual(k), k == conf.HostKeyAlgorithms)
	}
	return offers
}

// possible returns the part of a list that the native engine has, in the order of the list or in
// its own.
func (r *Router) possible(k conf.Keyword, allowed []string, keepOrder bool) []string {
	have := r.Can.Lists[k]
	switch {
	case allowed == nil || have == nil:
		return allowed
	case keepOrder:
		return both(allowed, have)
	}
	return both(have, allowed)
}

// HasSSH reports whether there is an ssh that answers.
func (r *Router) HasSSH() bool {
	_, err := r.lists()
	return err == nil
}

// both returns the names in a and in b, in the order of a.
func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
}

// Master returns where a master of a host may listen, "" if there is to be none: in our own
// directory where ssh_config names no place.
func (r *Router) Master(c *conf.Resolved) string {
	return c.ControlPath(safedir.Masters(r.params.Getenv))
}

// Configuration returns the complete configuration. Without an installed ssh it lacks the values
// that only ssh knows.
func (r *Router) Configuration(ctx context.Context) (*Configuration, error) { return r.hosts.full(ctx) }

// HostNames returns the names on the Host lines.
func (r *Router) HostNames() []string { return r.hosts.quick.HostNames() }

// KnownHostsFiles returns the files of host keys for a host that the configuration does not
// mention.
func (r *Router) KnownHostsFiles(ctx context.Context) ([]string, error) {
	c, err := r.hosts.resolve(ctx, host.Endpoint{Name: "localhost"})
	if err != nil {
		return nil, err
	}
	return slices.Concat(c.Files(conf.UserKnownHostsFile), c.Files(conf.GlobalKnownHostsFile)), nil
}

// Mistake returns the installed ssh's error about the configuration of a host.
func (r *Router) Mistake(ctx context.Context, h host.Host) error {
	exact, err := r.hosts.exact.Get(ctx)
	if err == nil {
		_, err = exact.Asker.Resolve(ctx, h.Asked())
	}
	return err
}

// Release returns the release of the installed ssh; ok is false where there is none, or one of
// another maker.
func (r *Router) Release(ctx context.Context) (release conf.Version, ok bool) {
	exact, err := r.hosts.exact.Get(ctx)
	if err != nil {
		return release, false
	}
	return exact.Release(), exact.Release() != conf.Version{}
}

// Route is the target of one host and the route to it, for every engine. The zero value follows
// ssh_config.
type Route struct {
	Host     *conf.Resolved
	Jumps    []*conf.Resolved // in the order in which they are connected to
	Decision conf.Decision    // about all of them

	accepts func(*conf.Resolved) bool // whether keys of a host are trusted and recorded; nil: none is
}

// Hops returns all hosts to connect to, in that order.
func (w *Route) Hops() []*conf.Resolved { return append(slices.Clone(w.Jumps), w.Host) }

// Route resolves a host and the jump hosts before it. Nothing is started for a host whose jump
// hosts go in a circle.
func (r *Router) Route(ctx context.Context, h host.Host) (*Route, error) {
	c, err := r.hosts.resolve(ctx, h.Asked())
	if err != nil {
		return nil, err
	}
	jumps, err := r.chain(ctx, c)
	if err == nil {
		err = r.refuseLoops(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return &Route{c, jumps, r.decide(c, jumps), r.AcceptsNew}, nil
}

// maxJumps is how many jump hosts may stand before a host.
const maxJumps = 8

// chain resolves the jump hosts before c, the first to connect to first. As with ssh -J, a jump
// host uses its own configuration; the first one's own ProxyJump counts, too.
func (r *Router) chain(ctx context.Context, c *conf.Resolved) ([]*conf.Resolved, error) {
	var chain []*conf.Resolved
	path := []string{c.Name} // from the host outwards
	for before := c.ProxyJump(); len(before) > 0; {
		last := len(before) - 1
		hop, err := r.jump(ctx, before[last])
		path = append(path, before[last].Name)
		if err != nil {
			return nil, fmt.Errorf("jump host %s: %w", before[last].Name, err)
		}
		chain = append([]*conf.Resolved{hop}, chain...)
		if len(chain) > maxJumps {
			return nil, &jumpsError{path, conf.ProxyJump}
		}
		if before = before[:last]; len(before) == 0 {
			before = hop.ProxyJump()
		}
	}
	return chain, nil
}

func (r *Router) jump(ctx context.Context, j host.Endpoint) (*conf.Resolved, error) {
	configuration, err := r.jumps()
	if err != nil {
		return nil, err
	}
	return configuration.resolve(ctx, j)
}

// decide decides about a host and its jump hosts together: ssh must make the whole connection if
// any of them needs it. A jump host's LocalCommand is left to ssh: it writes into the connection.
func (r *Router) decide(c *conf.Resolved, jumps []*conf.Resolved) conf.Decision {
	d := conf.Decide(c, r.Can)
	onJump := r.Can
	onJump.Locally = false
	for _, jump := range jumps {
		for _, reason := range conf.Decide(jump, onJump).Reasons {
			reason.Text = "jump host " + jump.Name + ": " + reason.Text
			d.Engine, d.Notes = conf.OpenSSH, nil
			d.Reasons = append(d.Reasons, reason)
		}
	}
	return d
}

// AcceptsNew decides about keys of hosts that are not known yet, for all engines. "no" is not a
// policy that run knows: it means strict here.
func (r *Router) AcceptsNew(c *conf.Resolved) bool {
	strictness := c.StrictHostKeyChecking()
	if strictness == conf.Lax {
		r.laxness.Do(func() {
			r.params.Warn("StrictHostKeyChecking=no counts as yes here; to trust and record keys of new hosts use --accept-new or StrictHostKeyChecking=accept-new")
		})
	}
	return r.params.AcceptNew || !r.params.Strict && strictness == conf.AcceptNew && c.IsSet(conf.StrictHostKeyChecking)
}
