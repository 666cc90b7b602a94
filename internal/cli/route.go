package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshconf"
)

// router finds out how hosts are reached: their configuration, the jump hosts
// before them, and which engine can do it. It starts nothing but what ssh_config
// itself asks for, and the installed ssh for its own lists and defaults.
type router struct {
	hosts *configuration
	jumps func() (*configuration, error) // without the user's flags, as ssh -J has it
	can   sshconf.Capabilities

	acceptNew bool      // trust and record keys of hosts that are not known yet
	warnings  io.Writer // nil = none are written
	laxness   sync.Once
}

// newRouter reads the configuration under the flags of a command.
func newRouter(ctx context.Context, sys System, flags connectionFlags, command string) (*router, error) {
	system, err := sshSystem(sys)
	if err != nil {
		return nil, err
	}
	system.Exec = onceEach(system.Exec)
	params := flags.params()
	params.Command, params.System = command, system
	ssh := installedSSH(ctx)
	hosts, err := newConfiguration(ctx, params, ssh)
	if err != nil {
		return nil, configError(err)
	}
	return &router{hosts: hosts, can: nativeCapabilities(), jumps: sync.OnceValues(func() (*configuration, error) {
		return newConfiguration(ctx, sshconf.Params{File: flags.config, System: system}, ssh)
	})}, nil
}

// configuration is one set of files and flags.
type configuration struct {
	quick *sshconf.Config            // knows no installed ssh
	exact func() (*sshConfig, error) // knows its lists and defaults, and asks it
}

func newConfiguration(ctx context.Context, p sshconf.Params, ssh sshconf.Runner) (*configuration, error) {
	quick, err := sshconf.Load(ctx, p)
	if err != nil {
		return nil, err
	}
	return &configuration{quick: quick, exact: sync.OnceValues(func() (*sshConfig, error) {
		ctx := context.WithoutCancel(ctx)
		var err error
		if p.Defaults, err = sshconf.AskDefaults(ctx, ssh); err != nil {
			return nil, err
		}
		c, err := sshconf.Load(ctx, p)
		if err != nil {
			return nil, err
		}
		return &sshConfig{c, sshconf.NewAsker(c, ssh)}, nil
	})}, nil
}

// resolve asks the installed ssh only where nobody else knows the answer: it
// takes as long as fifty logins. What it says is taken against its own
// defaults, so that these do not look like the user's settings.
func (c *configuration) resolve(ctx context.Context, q sshconf.Query) (*sshconf.Resolved, error) {
	quick, err := c.quick.Resolve(ctx, q)
	if err == nil && len(quick.Gaps) == 0 && !editsLists(quick) {
		return quick, nil
	}
	exact, exactErr := c.exact()
	switch {
	case exactErr == nil:
		return exact.asker.Resolve(ctx, q)
	case err != nil:
		return nil, err
	}
	return nil, exactErr
}

// full is exact, or what can be known where no ssh is installed.
func (c *configuration) full() (*sshConfig, error) {
	exact, err := c.exact()
	if _, missing := errors.AsType[*openssh.NotFoundError](err); missing {
		return &sshConfig{c.quick, sshconf.NewAsker(c.quick, missingSSH)}, nil
	}
	if err != nil {
		return nil, configError(err)
	}
	return exact, nil
}

// lists are the keywords whose values may be edits of ssh's own lists.
var lists = []sshconf.Keyword{
	sshconf.Ciphers, sshconf.MACs, sshconf.KexAlgorithms, sshconf.HostKeyAlgorithms, sshconf.PubkeyAcceptedAlgorithms,
}

// editsLists tells whether a list is not simply one of names.
func editsLists(c *sshconf.Resolved) bool {
	return slices.ContainsFunc(lists, func(k sshconf.Keyword) bool {
		v, ok := c.Get(k)
		text := strings.Join(v.Args, ",")
		return ok && c.IsSet(k) && text != "" && (strings.IndexByte("+-^", text[0]) >= 0 || strings.ContainsAny(text, "*?"))
	})
}

// route is how one host is reached.
type route struct {
	host     *sshconf.Resolved
	jumps    []*sshconf.Resolved // in the order in which they are connected to
	decision sshconf.Decision    // about all of them
}

// route resolves a host and the jump hosts before it. Nothing is started for a
// host whose jump hosts go in a circle.
func (r *router) route(ctx context.Context, h host.Host) (*route, error) {
	c, err := r.hosts.resolve(ctx, queryOf(h))
	if err != nil {
		return nil, err
	}
	jumps, err := r.chain(ctx, c)
	if err != nil {
		return nil, err
	}
	return &route{c, jumps, r.decide(c, jumps)}, nil
}

func queryOf(h host.Host) sshconf.Query {
	return sshconf.Query{Name: h.Name, User: h.User, Port: int(h.Port)}
}

// maxJumps is how many jump hosts may stand before a host.
const maxJumps = 8

// chain resolves the jump hosts before c, the first to connect to first. As with
// ssh -J, a jump host uses its own configuration; the first one's own ProxyJump
// counts, too.
func (r *router) chain(ctx context.Context, c *sshconf.Resolved) ([]*sshconf.Resolved, error) {
	var chain []*sshconf.Resolved
	path := []string{c.Name} // from the host outwards
	for before := c.ProxyJump(); len(before) > 0; {
		last := len(before) - 1
		hop, err := r.jump(ctx, before[last])
		path = append(path, before[last].Host)
		if err != nil {
			return nil, fmt.Errorf("jump host %s: %w", before[last].Host, err)
		}
		chain = append([]*sshconf.Resolved{hop}, chain...)
		if len(chain) > maxJumps {
			return nil, &jumpsError{path}
		}
		if before = before[:last]; len(before) == 0 {
			before = hop.ProxyJump()
		}
	}
	return chain, nil
}

func (r *router) jump(ctx context.Context, j sshconf.Jump) (*sshconf.Resolved, error) {
	configuration, err := r.jumps()
	if err != nil {
		return nil, err
	}
	return configuration.resolve(ctx, sshconf.Query{Name: j.Host, User: j.User, Port: j.Port})
}

// jumpsError is a way through more jump hosts than anybody has: as a rule they
// refer to each other, and ssh would start processes without end.
type jumpsError struct{ path []string } // from the host outwards

func (e *jumpsError) Error() string {
	for i, name := range e.path {
		if first := slices.Index(e.path, name); first < i {
			return "ProxyJump goes in a circle: " + strings.Join(e.path[first:i+1], " -> ")
		}
	}
	return fmt.Sprintf("more than %d jump hosts before %s: %s", maxJumps, e.path[0], strings.Join(e.path[1:], " -> "))
}

// Hint says what to do about it.
func (e *jumpsError) Hint() string {
	return "correct ProxyJump, such as with \"ProxyJump none\" for the jump host; sshpace explain HOST shows which line sets it"
}

// decide is the decision about a host and its jump hosts together: ssh has to
// go the whole way if any of them needs it.
func (r *router) decide(c *sshconf.Resolved, jumps []*sshconf.Resolved) sshconf.Decision {
	d := sshconf.Decide(c, r.can)
	for _, jump := range jumps {
		for _, reason := range sshconf.Decide(jump, r.can).Reasons {
			reason.Text = "jump host " + jump.Name + ": " + reason.Text
			d.Engine, d.Notes = sshconf.OpenSSH, nil
			d.Reasons = append(d.Reasons, reason)
		}
	}
	return d
}

// acceptsNew decides about keys of hosts that are not known yet, for all
// engines. "no" is no policy that run knows: it means strict here.
func (r *router) acceptsNew(c *sshconf.Resolved) bool {
	strictness := c.StrictHostKeyChecking()
	if strictness == sshconf.Lax && r.warnings != nil {
		r.laxness.Do(func() {
			fmt.Fprintln(r.warnings, "sshpace: warning: StrictHostKeyChecking=no counts as yes here; to trust and record keys of new hosts use --accept-new")
		})
	}
	return r.acceptNew || strictness == sshconf.AcceptNew && c.IsSet(sshconf.StrictHostKeyChecking)
}

// sshJumps are the jump hosts as the ssh program is told about them.
func (r *router) sshJumps(way *route) []openssh.Jump {
	var jumps []openssh.Jump
	for _, c := range way.jumps {
		jumps = append(jumps, openssh.Jump{User: c.User(), Host: c.Name, Port: c.Port(), AcceptNew: r.acceptsNew(c)})
	}
	return jumps
}

// onceEach answers "Match exec", each command once per run.
func onceEach(run func(context.Context, string) (bool, error)) func(context.Context, string) (bool, error) {
	var mu sync.Mutex
	known := make(map[string]func() (bool, error))
	return func(ctx context.Context, command string) (bool, error) {
		mu.Lock()
		answer := known[command]
		if answer == nil {
			answer = sync.OnceValues(func() (bool, error) { return run(context.WithoutCancel(ctx), command) })
			known[command] = answer
		}
		mu.Unlock()
		return answer()
	}
}

// installedSSH finds ssh only when somebody asks it something.
func installedSSH(ctx context.Context) sshconf.Runner {
	find := sync.OnceValue(func() sshconf.Runner {
		program, err := openssh.FindClient(context.WithoutCancel(ctx), "")
		if err != nil {
			return missingSSH
		}
		return sshRunner(program.Path)
	})
	return func(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
		return find()(ctx, args...)
	}
}

// isJumpsError tells whether err is about the jump hosts of a configuration.
func isJumpsError(err error) bool {
	_, ok := errors.AsType[*jumpsError](err)
	return ok
}
