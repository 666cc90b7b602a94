package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/openssh"
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
	connectTimeout time.Duration // 0 = as configured, else 15 s
	acceptNew      bool
	command        string // for "Match command"
	noKillSession  bool
	warnings       io.Writer // nil = none are written
}

// reach runs commands on hosts by ssh_config and known_hosts, with whichever
// engine each host needs. It is the fleet.Executor of run, and a dial.Resolver.
type reach struct {
	opts     reachOptions
	system   sshconf.System
	config   *sshconf.Config // for the hosts of the run
	asker    *sshconf.Asker
	laxness  sync.Once                      // warns of StrictHostKeyChecking no
	jumps    func() (*sshconf.Asker, error) // for jump hosts: without the user's flags, as ssh -J has it
	exact    func() (*sshconf.Asker, error) // knows the installed ssh's own lists
	native   *dial.Engine
	forked   *forkssh.Engine
	can      sshconf.Capabilities
	ssh      sshconf.Runner // the installed one
	environ  []string
	mu       sync.Mutex
	keys     map[string]*hostKeys
	resolved map[host.Target]func() (*dial.Target, error)
}

var (
	_ fleet.Executor = (*reach)(nil)
	_ dial.Resolver  = (*reach)(nil)
)

// newReach reads the configuration. The caller closes the result.
func newReach(ctx context.Context, sys System, o reachOptions) (*reach, error) {
	system, err := sshSystem(sys)
	if err != nil {
		return nil, err
	}
	system.Exec = onceEach(system.Exec)
	r := &reach{
		opts: o, system: system, can: nativeCapabilities(), ssh: installedSSH(ctx), environ: os.Environ(),
		keys: make(map[string]*hostKeys), resolved: make(map[host.Target]func() (*dial.Target, error)),
	}
	if r.config, r.asker, err = r.load(ctx, r.params(nil)); err != nil {
		return nil, configError(err)
	}
	r.jumps = sync.OnceValues(func() (*sshconf.Asker, error) {
		_, a, err := r.load(ctx, sshconf.Params{File: o.connection.config, System: system})
		return a, err
	})
	r.exact = sync.OnceValues(func() (*sshconf.Asker, error) {
		defaults, err := sshconf.AskDefaults(ctx, r.ssh)
		if err != nil {
			return nil, err
		}
		_, a, err := r.load(ctx, r.params(defaults))
		return a, err
	})
	r.native = dial.New(r, dial.Options{Askpass: askpass(sys.Getenv), NoKillSession: o.noKillSession})
	r.forked = forkssh.New(forkssh.Options{
		Args: o.connection.options(), ConnectTimeout: o.connectTimeout, AcceptNew: o.acceptNew,
	})
	return r, nil
}

func (r *reach) params(defaults *sshconf.Defaults) sshconf.Params {
	p := r.opts.connection.params()
	p.Command, p.System, p.Defaults = r.opts.command, r.system, defaults
	return p
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

func (r *reach) load(ctx context.Context, p sshconf.Params) (*sshconf.Config, *sshconf.Asker, error) {
	c, err := sshconf.Load(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	return c, sshconf.NewAsker(c, r.ssh), nil
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

// Execute runs cmd with the engine that h needs.
func (r *reach) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a *fleet.Attempt) fleet.Outcome {
	if r.opts.engine == engineOpenSSH {
		return r.forked.Execute(ctx, h, cmd, a)
	}
	t, err := r.Target(ctx, h)
	var needs *needsSSH
	switch {
	case err == nil:
		return r.native.Run(ctx, t, cmd, a)
	case errors.As(err, &needs) && r.opts.engine == engineAuto:
		return r.forked.Execute(ctx, h, cmd, a)
	}
	o := fleet.Outcome{Engine: "native", Class: fleet.Local, Exit: -1, Err: err.Error(), Cause: err}
	if needs != nil {
		o.Hint = "use --engine auto or openssh"
	}
	return o
}

// Target resolves a host, once.
func (r *reach) Target(ctx context.Context, h host.Host) (*dial.Target, error) {
	r.mu.Lock()
	f := r.resolved[h.Target()]
	if f == nil {
		f = sync.OnceValues(func() (*dial.Target, error) { return r.resolve(context.WithoutCancel(ctx), h) })
		r.resolved[h.Target()] = f
	}
	r.mu.Unlock()
	return f()
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
	if r.opts.engine != engineOpenSSH {
		_, err := r.Target(ctx, h)
		if needs := (*needsSSH)(nil); !errors.As(err, &needs) {
			return err
		}
	}
	exact, err := r.exact()
	if err != nil {
		return err
	}
	_, err = exact.Resolve(ctx, sshconf.Query{Name: h.Name, User: h.User, Port: int(h.Port)})
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

func (r *reach) resolve(ctx context.Context, h host.Host) (*dial.Target, error) {
	q := sshconf.Query{Name: h.Name, User: h.User, Port: int(h.Port)}
	c, err := r.asker.Resolve(ctx, q)
	if err != nil || editsLists(c) {
		// Only the installed ssh knows what such a list comes to. Asking it takes
		// as long as fifty logins, so it is asked only now.
		if exact, exactErr := r.exact(); exactErr == nil {
			c, err = exact.Resolve(ctx, q)
		}
	}
	if err != nil {
		return nil, err
	}
	t, err := r.target(c)
	if err != nil {
		return nil, err
	}
	t.Jump, err = r.chain(ctx, c.ProxyJump(), 0)
	return t, err
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

// maxJumps is how many jump hosts may stand before a host.
const maxJumps = 8

// chain makes the Targets of jump hosts, the last of the list being the one
// next to the target. As with ssh -J, a hop uses its own configuration; the
// first one's own ProxyJump counts, too.
func (r *reach) chain(ctx context.Context, hops []sshconf.Jump, depth int) (*dial.Target, error) {
	if len(hops) == 0 {
		return nil, nil
	}
	if depth >= maxJumps {
		return nil, fmt.Errorf("more than %d jump hosts; is there a loop in ProxyJump?", maxJumps)
	}
	asker, err := r.jumps()
	if err != nil {
		return nil, err
	}
	hop := hops[len(hops)-1]
	c, err := asker.Resolve(ctx, sshconf.Query{Name: hop.Host, User: hop.User, Port: hop.Port})
	if err != nil {
		return nil, fmt.Errorf("jump host %s: %w", hop.Host, err)
	}
	t, err := r.target(c)
	if err != nil {
		return nil, fmt.Errorf("jump host %s: %w", hop.Host, err)
	}
	before := hops[:len(hops)-1]
	if len(before) == 0 {
		before = c.ProxyJump()
	}
	t.Jump, err = r.chain(ctx, before, depth+1)
	return t, err
}

// target turns one configuration into a Target, without its jump hosts.
func (r *reach) target(c *sshconf.Resolved) (*dial.Target, error) {
	if d := sshconf.Decide(c, r.can); d.Engine != sshconf.Native {
		return nil, &needsSSH{d.Reasons}
	}
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
		HostKeyAlgorithms: r.list(c, sshconf.HostKeyAlgorithms, c.HostKeyAlgorithms, nativeHostKeys()),
		PubkeyAlgorithms:  r.list(c, sshconf.PubkeyAcceptedAlgorithms, c.PubkeyAcceptedAlgorithms, nil),
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

// nativeHostKeys are the host-key algorithms of x/crypto. The insecure ones are
// used only where a configuration names them.
func nativeHostKeys() []string {
	return append(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys...)
}

// hostKeys is the policy about host keys over one set of known_hosts files.
type hostKeys struct {
	index     *knownhosts.Index
	acceptNew bool
	file      string // where new keys go
	hash      bool

	mu sync.Mutex // of writing
}

// hostKeys returns the policy of a configuration, shared by all hosts that have
// the same. "no" is no policy that run knows: it means strict here.
func (r *reach) hostKeys(c *sshconf.Resolved) *hostKeys {
	files := slices.Concat(c.UserKnownHostsFiles(), c.GlobalKnownHostsFiles())
	if c.StrictHostKeyChecking() == sshconf.Lax {
		r.laxness.Do(r.warnOfLaxness)
	}
	accept := r.opts.acceptNew || (c.StrictHostKeyChecking() == sshconf.AcceptNew && c.IsSet(sshconf.StrictHostKeyChecking))
	key := fmt.Sprintf("%q %v %v", files, accept, c.HashKnownHosts())
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[key]
	if k == nil {
		k = &hostKeys{index: knownhosts.Open(files...), acceptNew: accept, hash: c.HashKnownHosts()}
		if user := c.UserKnownHostsFiles(); len(user) > 0 {
			k.file = user[0]
		}
		r.keys[key] = k
	}
	return k
}

func (r *reach) warnOfLaxness() {
	if r.opts.warnings != nil {
		fmt.Fprintln(r.opts.warnings, "sshpace: warning: StrictHostKeyChecking=no counts as yes here; to trust and record keys of new hosts use --accept-new")
	}
}

func (k *hostKeys) Algorithms(name string, port int) []string {
	return k.index.HostKeyAlgorithms(name, port, nil)
}

func (k *hostKeys) Check(name string, port int, remote net.Addr, key ssh.PublicKey) error {
	err := k.index.Check(name, port, remote, key)
	var unknown *knownhosts.Unknown
	if errors.As(err, &unknown) && k.acceptNew && !unknown.CA {
		err = k.accept(name, port, key)
	}
	if err == nil {
		return nil
	}
	bad := &dial.HostKeyError{Changed: unknown == nil, Text: err.Error()}
	if explained, ok := err.(interface {
		What() string
		Hint() string
	}); ok {
		bad.Text, bad.Hint = explained.What(), explained.Hint()
	}
	return bad
}

// accept records a new key. One that cannot be recorded is not accepted either:
// it would be new for ever.
func (k *hostKeys) accept(name string, port int, key ssh.PublicKey) error {
	if k.file == "" {
		return &notRecorded{errors.New("UserKnownHostsFile names no file")}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.index.Check(name, port, nil, key) == nil { // another host of that name was first
		return nil
	}
	if cert, ok := key.(*ssh.Certificate); ok { // of no authority that we know: as in ssh, the key inside counts
		key = cert.Key
	}
	if err := knownhosts.Append(k.file, name, port, key, k.hash); err != nil {
		return &notRecorded{err}
	}
	return nil
}

// notRecorded is a new key that could not be written.
type notRecorded struct{ err error }

func (e *notRecorded) Error() string { return e.What() + "; " + e.Hint() }

// What says why the host is not used.
func (e *notRecorded) What() string {
	return "new host key not accepted, it cannot be recorded: " + e.err.Error()
}

// Hint says what to do about it.
func (e *notRecorded) Hint() string {
	return "name a file that can be written with -o UserKnownHostsFile=FILE"
}
