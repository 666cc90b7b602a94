package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/sshconf"
)

// engineChoice is a value of --engine.
type engineChoice string

const (
	engineAuto    engineChoice = "auto"    // native where it can, openssh for the other hosts
	engineNative  engineChoice = "native"  // never fork ssh
	engineOpenSSH engineChoice = "openssh" // always fork ssh
)

// reachOptions say how hosts are to be reached.
type reachOptions struct {
	engine         engineChoice
	connection     connectionFlags
	sshOptions     []string      // further ones, for ssh alone
	connectTimeout time.Duration // 0 = as configured, else 15 s
	acceptNew      bool
	command        string // for "Match command"
	noKillSession  bool
	warnings       io.Writer // nil = none are written
}

// reach runs commands on hosts by ssh_config and known_hosts, with whichever
// engine each host needs. It is the fleet.Executor of run, and a dial.Resolver.
type reach struct {
	*router
	opts    reachOptions
	native  *dial.Engine
	forked  *forkssh.Engine
	environ []string
	mu      sync.Mutex
	keys    map[string]*hostKeys
	planned map[host.Target]func() (*hostPlan, error)
}

var (
	_ fleet.Executor = (*reach)(nil)
	_ dial.Resolver  = (*reach)(nil)
)

// newReach reads the configuration. The caller closes the result.
func newReach(ctx context.Context, sys System, o reachOptions) (*reach, error) {
	router, err := newRouter(ctx, sys, o.connection, o.command)
	if err != nil {
		return nil, err
	}
	router.acceptNew, router.warnings = o.acceptNew, o.warnings
	r := &reach{
		router: router, opts: o, environ: os.Environ(),
		keys: make(map[string]*hostKeys), planned: make(map[host.Target]func() (*hostPlan, error)),
	}
	r.native = dial.New(r, dial.Options{Askpass: askpass(sys.Getenv), NoKillSession: o.noKillSession})
	flags := o.connection
	flags.jump = "" // each host's route has its jump hosts
	r.forked = forkssh.New(forkssh.Options{Args: append(flags.options(), o.sshOptions...), ConnectTimeout: o.connectTimeout})
	return r, nil
}

// Close ends what hosts share.
func (r *reach) Close() error { return r.native.Close() }

// FDs is what a host needs; a host that turns out to need ssh although the
// native engine was planned for waits until there is room.
func (r *reach) FDs() int {
	if r.opts.engine == engineOpenSSH {
		return r.forked.FDs()
	}
	return r.native.FDs()
}

// needsSSH says that a host cannot be reached by the native engine.
type needsSSH struct{ reasons []sshconf.Reason }

func (e *needsSSH) Error() string {
	var texts []string
	for _, reason := range e.reasons {
		texts = append(texts, reason.String())
	}
	return "the native engine cannot do this: " + strings.Join(texts, "; ")
}

// hostPlan is how one host is reached.
type hostPlan struct {
	*route
	target *dial.Target // nil: only ssh can
}

// Execute runs cmd with the engine that h needs.
func (r *reach) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a *fleet.Attempt) fleet.Outcome {
	p, err := r.plan(ctx, h)
	switch {
	case err != nil:
		return unreached(err)
	case r.opts.engine == engineOpenSSH, p.target == nil && r.opts.engine == engineAuto:
		return r.forked.Run(ctx, h, r.sshRoute(p.route), cmd, a)
	case p.target == nil:
		return unreached(&needsSSH{p.decision.Reasons})
	}
	return r.native.Run(ctx, p.target, cmd, a)
}

// sshRoute is a route for the ssh program.
func (r *reach) sshRoute(way *route) forkssh.Route {
	return forkssh.Route{AcceptNew: r.acceptsNew(way.host), Jumps: r.sshJumps(way)}
}

// unreached is a host that fails before anything is started for it.
func unreached(err error) fleet.Outcome {
	o := fleet.Outcome{Engine: "native", Class: fleet.Local, Exit: -1, Err: err.Error(), Cause: err}
	if hinted := (interface{ Hint() string })(nil); errors.As(err, &hinted) {
		o.Hint = hinted.Hint()
	}
	return o
}

// Hint says what to do about it.
func (e *needsSSH) Hint() string { return "use --engine auto or openssh" }

// Target is how the native engine reaches a host.
func (r *reach) Target(ctx context.Context, h host.Host) (*dial.Target, error) {
	p, err := r.plan(ctx, h)
	if err == nil && p.target == nil {
		err = &needsSSH{p.decision.Reasons}
	}
	if err != nil {
		return nil, err
	}
	return p.target, nil
}

// plan finds out how to reach a host, once.
func (r *reach) plan(ctx context.Context, h host.Host) (*hostPlan, error) {
	r.mu.Lock()
	f := r.planned[h.Target()]
	if f == nil {
		f = sync.OnceValues(func() (*hostPlan, error) { return r.newPlan(context.WithoutCancel(ctx), h) })
		r.planned[h.Target()] = f
	}
	r.mu.Unlock()
	return f()
}

func (r *reach) newPlan(ctx context.Context, h host.Host) (*hostPlan, error) {
	way, err := r.route(ctx, h)
	if err != nil {
		return nil, err
	}
	p := &hostPlan{route: way}
	if way.decision.Engine != sshconf.Native || r.opts.engine == engineOpenSSH {
		return p, nil
	}
	for _, c := range append(slices.Clone(way.jumps), way.host) {
		t, err := r.target(c)
		if err != nil {
			return nil, err
		}
		t.Jump, p.target = p.target, t
	}
	return p, nil
}

// check refuses a configuration that is wrong for all hosts: each of them would
// fail with the same words.
func (r *reach) check(ctx context.Context, hosts []host.Host) error {
	var first error
	for _, h := range hosts {
		err := r.mistake(ctx, h)
		if !isConfigError(err) {
			return nil
		}
		if first == nil {
			first = configError(err)
		}
	}
	return first
}

// mistake is why a host's configuration cannot be used, by the engine that it
// needs.
func (r *reach) mistake(ctx context.Context, h host.Host) error {
	p, err := r.plan(ctx, h)
	if err != nil || r.opts.engine != engineOpenSSH && p.target != nil {
		return err
	}
	exact, err := r.hosts.exact()
	if err != nil {
		return err
	}
	_, err = exact.asker.Resolve(ctx, queryOf(h))
	return err
}

// warm resolves all hosts and tries hashed lines of known_hosts for all names
// in one pass. It is only a matter of speed.
func (r *reach) warm(ctx context.Context, hosts []host.Host) {
	if r.opts.engine == engineOpenSSH {
		return
	}
	names := make(map[*hostKeys][]string)
	for _, h := range hosts {
		t, err := r.Target(ctx, h)
		if err != nil {
			continue
		}
		if k, ok := t.HostKeys.(*hostKeys); ok {
			name := t.HostKeyAlias
			if name == "" {
				name = knownhosts.HostPort(t.HostName, t.Port)
			}
			names[k] = append(names[k], name)
		}
	}
	for k, list := range names {
		k.index.Warm(ctx, list)
	}
}

// target turns one configuration into a Target, without its jump hosts.
func (r *reach) target(c *sshconf.Resolved) (*dial.Target, error) {
	proxy, err := c.ProxyCommand()
	if err != nil {
		return nil, err
	}
	files, err := c.IdentityFiles()
	if err != nil {
		return nil, err
	}
	certs, err := c.CertificateFiles()
	if err != nil {
		return nil, err
	}
	t := &dial.Target{
		HostName: c.HostName(), Port: c.Port(), User: c.User(),
		HostKeyAlias: c.HostKeyAlias(), HostKeys: r.hostKeys(c),
		Family: families[c.AddressFamily()], BindAddress: c.BindAddress(),
		ConnectTimeout: r.opts.connectTimeout, AliveInterval: c.ServerAliveInterval(), AliveCountMax: c.ServerAliveCountMax(),
		KeyExchanges:      r.list(c, sshconf.KexAlgorithms, c.KexAlgorithms, r.can.KexAlgorithms),
		Ciphers:           r.list(c, sshconf.Ciphers, c.Ciphers, r.can.Ciphers),
		MACs:              r.list(c, sshconf.MACs, c.MACs, r.can.MACs),
		HostKeyAlgorithms: r.list(c, sshconf.HostKeyAlgorithms, c.HostKeyAlgorithms, r.can.HostKeyAlgorithms),
		KeepHostKeyOrder:  c.KeepsHostKeyOrder(),
		PubkeyAlgorithms:  r.list(c, sshconf.PubkeyAcceptedAlgorithms, c.PubkeyAcceptedAlgorithms, nil),
		MinRSABits:        c.RequiredRSASize(),
		Identity:          dial.Identity{Files: files, Certificates: certs, Only: c.IdentitiesOnly(), Agent: c.IdentityAgent()},
		Env:               c.Environment(r.environ),
		ProxyCommand:      proxy,
	}
	if t.ConnectTimeout == 0 {
		t.ConnectTimeout = c.ConnectTimeout()
	}
	return t, nil
}

var families = map[string]dial.Family{"inet": dial.IPv4, "inet6": dial.IPv6}

// list is an algorithm list that somebody has set, as far as we have the
// algorithms; nil leaves the engine's own.
func (r *reach) list(c *sshconf.Resolved, k sshconf.Keyword, get func() []string, have []string) []string {
	if !c.IsSet(k) {
		return nil
	}
	list := slices.Clone(get())
	if have == nil {
		return list
	}
	return slices.DeleteFunc(list, func(a string) bool { return !slices.Contains(have, a) })
}
