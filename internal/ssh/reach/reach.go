// Package reach runs commands on hosts by ssh_config and known_hosts: one route and one policy
// about host keys for every engine. It knows nothing about the commands and their sinks.
package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/session"
	"sshpace/internal/ssh/sshfp"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// Engine is the program that connects.
type Engine = conf.Engine

const (
	Auto    Engine = "auto" // native where it can, openssh for the other hosts
	Native         = conf.Native
	OpenSSH        = conf.OpenSSH
)

// Params control how hosts are reached.
type Params struct {
	route.Params
	Engine     Engine
	SSHOptions []string // further ones, for ssh alone
	// Program, when set, is started for each host with the arguments of Argv, see forkssh.Options;
	// it is not started for hosts that no engine may connect to.
	Program       string
	Argv          func(h host.Host, command string) []string
	NoKillSession bool
	KeysOnly      bool           // nobody logs in to the hosts, see Look; with Strict
	DNS           sshfp.Resolver // with KeysOnly, for hosts with VerifyHostKeyDNS
	Password      dial.Password  // for hosts that take no key, nil = none; the native engine gives it
	Person        *dial.Person   // answers hosts and jump hosts, and opens keys, nil = nobody; the native engine asks
	KeyHolder     []string       // starts a process that holds private keys in the place of this one, see dial.HoldKeys; nil = none
	LoginLog      io.Writer      // called for the native engine's steps, see dial.LogSteps; nil is never called
}

// Executor runs commands on hosts, with the engine that each host needs. It is the native engine's
// resolver, too.
type Executor struct {
	*route.Router
	params  Params
	native  *dial.Engine
	forked  *forkssh.Engine
	environ []string
	onlySSH sync.Map // servers with which the native engine has no algorithm in common, or for which it lacks a key
	// passedOver guards the warning about a KnownHostsCommand that ssh would not start.
	passedOver sync.Once
	mu         sync.Mutex
	keys       map[keysOf]*hostKeys
	planned    map[host.Endpoint]*sched.Together[*hostPlan]
}

var (
	_ fleet.Executor = (*Executor)(nil)
	_ dial.Resolver  = (*Executor)(nil)
)

// New reads the configuration. The caller closes the result.
func New(ctx context.Context, p Params) (*Executor, error) {
	router, err := route.New(ctx, p.Params)
	if err != nil {
		return nil, err
	}
	e := &Executor{
		Router: router, params: p, environ: os.Environ(),
		keys: make(map[keysOf]*hostKeys), planned: make(map[host.Endpoint]*sched.Together[*hostPlan]),
	}
	options := dial.Options{Askpass: Askpass(p), Person: p.Person, NoKillSession: p.NoKillSession, Warn: p.Warn}
	if p.KeyHolder != nil {
		options.Holder = func() (io.ReadWriteCloser, error) { return proc.StartPartner(p.KeyHolder) }
	}
	if p.LoginLog != nil {
		options.Step = dial.LogSteps(p.LoginLog)
	}
	e.Can.Passwords, e.Can.DNS = p.Password != nil || p.Person != nil || p.KeysOnly, p.KeysOnly
	e.native = dial.New(e, options)
	flags := p.Flags
	flags.Jump = "" // each host's route has its jump hosts
	e.forked = forkssh.New(forkssh.Options{Binary: p.Program, Argv: p.Argv, Flags: flags, Args: p.SSHOptions, ConnectTimeout: p.ConnectTimeout, Master: e.Master})
	return e, nil
}

// Keep keeps the native engine's connections to at most that many hosts between their commands.
func (e *Executor) Keep(most int) { e.native.Keep(most) }

// Forget drops the keys of logins; see dial.Engine.
func (e *Executor) Forget() { e.native.Forget() }

// Close ends everything that hosts share.
func (e *Executor) Close() error { return e.native.Close() }

// Naming is the number of names that name servers have not answered yet.
func (e *Executor) Naming() int { return e.native.Naming() }

// FDs is the need of a host; a host that turns out to need ssh although the native engine was
// planned for waits until there is room.
func (e *Executor) FDs() int {
	if e.params.Engine == OpenSSH {
		return e.forked.FDs()
	}
	return e.native.FDs()
}

// needsSSH says that a host cannot be reached by the native engine.
type needsSSH struct{ reasons []conf.Reason }

func (n *needsSSH) Error() string {
	return "the native engine cannot do this: " + joined(n.reasons)
}

func joined(reasons []conf.Reason) string {
	var texts []string
	for _, reason := range reasons {
		texts = append(texts, reason.String())
	}
	return strings.Join(texts, "; ")
}

// hostPlan is the route and the engine of one host.
type hostPlan struct {
	*route.Route
	target *dial.Target // nil: only ssh can
}

// Execute runs cmd with the engine that h needs.
func (e *Executor) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	p, err := e.plan(ctx, h)
	switch {
	case err != nil && ctx.Err() != nil:
		o := fleet.Outcome{Engine: "native", Exit: -1}
		o.Stop(context.Cause(ctx))
		return o
	case err != nil:
		return Unreached(err)
	case e.params.Engine == OpenSSH:
		return e.forked.Run(ctx, h, p.Route, nil, cmd, a)
	}
	o, passed := e.shared(ctx, p.Host, cmd, a)
	switch {
	case passed == nil:
		return o
	case errors.Is(passed, os.ErrNotExist):
		return e.connect(ctx, h, p, nil, cmd, a)
	}
	o = e.connect(ctx, h, p, []string{"-o", "ControlPath=none"}, cmd, a)
	o.Note = passed.Error() + "; connected anew"
	return o
}

// Planned is how commands will reach a host.
type Planned struct {
	*route.Route
	Engine string // "master" is a ControlMaster that listens; "" if none that is allowed can
	Why    string // it is a master, ssh, or none
}

// Planned finds out how commands will reach a host, without a connection to anybody.
func (e *Executor) Planned(ctx context.Context, h host.Host) (*Planned, error) {
	p, err := e.plan(ctx, h)
	if err != nil {
		return nil, err
	}
	found := &Planned{Route: p.Route, Engine: string(conf.Native)}
	switch {
	case e.params.Engine == OpenSSH:
		found.Engine = string(OpenSSH)
	case openssh.Listens(e.Master(p.Host)):
		found.Engine, found.Why = "master", "a connection to it is kept open"
	case p.target != nil:
	case e.params.Engine == Auto:
		found.Engine, found.Why = string(OpenSSH), joined(p.Decision.Reasons)
	default:
		found.Engine, found.Why = "", (&needsSSH{p.Decision.Reasons}).Error()
	}
	return found, nil
}

// jumpMaster finds the connection of a jump host's live ControlMaster. One that cannot be used is
// reported and skipped.
func (e *Executor) jumpMaster(c *conf.Resolved) func(context.Context) line.Line {
	path := e.Master(c)
	if path == "" {
		return nil
	}
	return func(ctx context.Context) line.Line {
		l, err := mux.Open(ctx, path)
		switch {
		case err == nil:
			return l
		case !e.absent(path, err):
			e.params.Warn("jump host " + c.Name + ": " + err.Error() + "; connected anew")
		}
		return nil
	}
}

// shared runs cmd over the connection of a live ControlMaster; the error says why there is none,
// and then nothing has run.
func (e *Executor) shared(ctx context.Context, c *conf.Resolved, cmd fleet.Command, a fleet.Attempt) (fleet.Outcome, error) {
	path := e.Master(c)
	if path == "" {
		return fleet.Outcome{}, os.ErrNotExist
	}
	cmd.Env = slices.Concat(c.Environment(e.environ), cmd.Env)
	s := mux.Session{Path: path, Command: cmd, Timeout: cmp.Or(e.params.ConnectTimeout, c.Duration(conf.ConnectTimeout))}
	o, err := s.Run(ctx, a)
	switch {
	case err == nil:
		o.Note = cmp.Or(o.Note, openToOthers(path))
	case e.absent(path, err):
		err = os.ErrNotExist
	}
	return o, err
}

// absent reports whether an error means that there is no master. A dead one in our own directory is
// none: the user has named no socket.
func (e *Executor) absent(path string, err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) && filepath.Dir(path) == safedir.Masters(e.params.Getenv)
}

// openToOthers warns that others can put another socket in the place of one. As with ssh it is used
// all the same: its master is ours or root's.
func openToOthers(path string) string {
	_, err := safedir.Resolve(filepath.Dir(path))
	if why, untrusted := errors.AsType[*safedir.UntrustedError](err); untrusted {
		return "others can replace the ControlPath " + path + ": " + why.Error()
	}
	return ""
}

// connect runs cmd over its own connection, with the engine that h needs; options are for ssh, if
// that is it.
func (e *Executor) connect(ctx context.Context, h host.Host, p *hostPlan, options []string, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	switch {
	case p.target == nil && e.params.Engine != Auto:
		return Unreached(&needsSSH{p.Decision.Reasons})
	case p.target != nil:
		server := knownhosts.HostPort(p.target.HostName, p.target.Port)
		if _, known := e.onlySSH.Load(server); known {
			break
		}
		o := e.native.Run(ctx, p.target, cmd, a)
		if e.params.Engine != Auto || !e.onlySSHMay(&o) {
			return o
		}
		e.onlySSH.Store(server, true)
	}
	o := e.forked.Run(ctx, h, p.Route, options, cmd, a)
	if o.Class == fleet.AuthFailed && e.params.Password != nil {
		o.Hint = "only ssh can reach this host, and ssh is never given a password"
	}
	return o
}

// onlySSHMay reports whether ssh should be tried on a host if the native engine shares no algorithm
// with it or one of its jump hosts, or lacks a key for it. Nothing has run there then.
func (e *Executor) onlySSHMay(o *fleet.Outcome) bool {
	why, _ := errors.AsType[*dial.Error](o.Cause)
	if o.Ran != fleet.RanNo || o.Class != fleet.NoCommonAlgo && !(why != nil && why.OnlySSH) {
		return false
	}
	if !e.HasSSH() {
		o.Hint = "install the OpenSSH client, which may know more algorithms: it is used for such a host without being asked for"
		return false
	}
	return true
}

// Unreached returns the outcome of a host that fails before anything is started for it, as by Open.
func Unreached(err error) fleet.Outcome {
	if own, ok := errors.AsType[*dial.Error](err); ok {
		return own.Outcome()
	}
	o := fleet.Outcome{Engine: "native", Class: fleet.Local, Exit: -1, Err: err.Error(), Cause: err, Hint: fault.HintOf(err)}
	if hinted := (interface{ Hint() string })(nil); errors.As(err, &hinted) {
		o.Hint = hinted.Hint()
	}
	return o
}

// Hint suggests a remedy.
func (*needsSSH) Hint() string { return "use --engine auto or openssh" }

// Target returns how the native engine reaches a host.
func (e *Executor) Target(ctx context.Context, h host.Host) (*dial.Target, error) {
	p, err := e.plan(ctx, h)
	if err == nil && p.target == nil {
		err = &needsSSH{p.Decision.Reasons}
	}
	if err != nil {
		return nil, err
	}
	return p.target, nil
}

// Open logs in to a host by the native engine, and keeps the connection; see dial.Engine.
func (e *Executor) Open(ctx context.Context, h host.Host, p dial.Progress) (*session.Connection, error) {
	t, err := e.Target(ctx, h)
	if err != nil {
		return nil, err
	}
	return e.native.Open(ctx, t, p)
}

// plan finds out how to reach a host, once.
func (e *Executor) plan(ctx context.Context, h host.Host) (*hostPlan, error) {
	e.mu.Lock()
	f := e.planned[h.Endpoint()]
	if f == nil {
		f = &sched.Together[*hostPlan]{Find: func(ctx context.Context) (*hostPlan, error) { return e.newPlan(ctx, h) }}
		e.planned[h.Endpoint()] = f
	}
	e.mu.Unlock()
	return f.Get(ctx)
}

func (e *Executor) newPlan(ctx context.Context, h host.Host) (*hostPlan, error) {
	found, err := e.Route(ctx, h)
	if err != nil {
		return nil, err
	}
	for _, c := range found.Hops() {
		if err := checkRevoked(c); err != nil {
			return nil, err
		}
	}
	p := &hostPlan{Route: found}
	if found.Decision.Engine != conf.Native || e.params.Engine == OpenSSH {
		return p, nil
	}
	for _, c := range found.Hops() {
		t, err := e.target(c)
		if err != nil {
			return nil, err
		}
		if lacking := lacking(t); lacking != nil {
			found.Decision = *lacking
			return &hostPlan{Route: found}, nil
		}
		e.prompts(t, c, c == found.Host)
		if c == found.Host {
			if t.Local, err = e.local(c); err != nil {
				return nil, err
			}
		} else {
			t.Shared = e.jumpMaster(c)
		}
		t.Jump, p.target = p.target, t
	}
	return p, nil
}

// checkRevoked refuses a list of revoked keys that the ssh to each host would wait for.
func checkRevoked(c *conf.Resolved) error {
	for _, path := range c.Files(conf.RevokedHostKeys) {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
			return fault.WithHint(fmt.Errorf("RevokedHostKeys %s is a pipe", path), "give a file that can be read for each host")
		}
	}
	return nil
}

// lacking returns the decision about a target to which the native engine has nothing to offer, nil
// if it has. An empty list would mean its defaults.
func lacking(t *dial.Target) *conf.Decision {
	for _, list := range []struct {
		keyword conf.Keyword
		names   []string
	}{
		{conf.KexAlgorithms, t.KeyExchanges}, {conf.Ciphers, t.Ciphers}, {conf.MACs, t.MACs}, {conf.HostKeyAlgorithms, t.HostKeyAlgorithms},
	} {
		if list.names != nil && len(list.names) == 0 {
			reason := conf.Reason{Keyword: list.keyword, Text: "ssh offers only algorithms that the native engine lacks", Origin: conf.Origin{Source: conf.FromDefault}}
			return &conf.Decision{Engine: conf.OpenSSH, Reasons: []conf.Reason{reason}}
		}
	}
	return nil
}

// Check refuses a configuration that is wrong for all hosts: each of them would fail with the same
// words.
func (e *Executor) Check(ctx context.Context, hosts []host.Host) error {
	var first error
	for _, h := range hosts {
		err := e.mistake(ctx, h)
		if !route.IsConfigError(err) {
			return nil
		}
		if first == nil {
			first = route.ConfigError(err)
		}
	}
	return first
}

// mistake returns why a host's configuration cannot be used, by the engine that it needs.
func (e *Executor) mistake(ctx context.Context, h host.Host) error {
	p, err := e.plan(ctx, h)
	if err != nil || e.params.Engine != OpenSSH && p.target != nil {
		return err
	}
	return e.Router.Mistake(ctx, h)
}

// Warm resolves all hosts and tries hashed lines of known_hosts for all names in one pass. It only
// saves time.
func (e *Executor) Warm(ctx context.Context, hosts []host.Host) {
	if e.params.Engine == OpenSSH {
		return
	}
	names := make(map[*hostKeys][]string)
	for _, h := range hosts {
		t, err := e.Target(ctx, h)
		if err != nil {
			continue
		}
		if k, ok := t.HostKeys.(*hostKeys); ok {
			names[k] = append(names[k], knownhosts.HostPort(t.HostKeyName()))
		}
	}
	for k, list := range names {
		k.index.Warm(ctx, list)
	}
}

// target turns one configuration into a Target, without its jump hosts.
func (e *Executor) target(c *conf.Resolved) (*dial.Target, error) {
	files, err := c.Paths(conf.IdentityFile)
	if err != nil {
		return nil, err
	}
	certs, err := c.Paths(conf.CertificateFile)
	if err != nil {
		return nil, err
	}
	t := &dial.Target{
		Name: c.Name, HostName: c.HostName(), Port: c.Port(), User: c.User(),
		HostKeyAlias: c.Word(conf.HostKeyAlias), HostKeys: e.policy(c),
		Family: families[c.Word(conf.AddressFamily)], BindAddress: c.Word(conf.BindAddress),
		ConnectTimeout: e.params.ConnectTimeout, AliveInterval: c.Duration(conf.ServerAliveInterval), AliveCountMax: c.Number(conf.ServerAliveCountMax),
		KeyExchanges:      e.Offered(c, conf.KexAlgorithms),
		Ciphers:           e.Offered(c, conf.Ciphers),
		MACs:              e.Offered(c, conf.MACs),
		HostKeyAlgorithms: e.Offered(c, conf.HostKeyAlgorithms),
		KeepHostKeyOrder:  c.KeepsHostKeyOrder(),
		PubkeyAlgorithms:  e.Offered(c, conf.PubkeyAcceptedAlgorithms),
		MinRSABits:        c.Number(conf.RequiredRSASize),
		Identity:          dial.Identity{Files: files, Certificates: certs, Only: c.Yes(conf.IdentitiesOnly), Batch: c.Yes(conf.BatchMode), Agent: c.IdentityAgent()},
		Env:               c.Environment(e.environ),
	}
	if !c.ByKey() {
		t.Identity = dial.Identity{}
	}
	if t.ConnectTimeout == 0 {
		t.ConnectTimeout = c.Duration(conf.ConnectTimeout)
	}
	return t, nil
}

// prompts lets a host ask. The password is for hosts that commands run on: jump hosts never see it.
func (e *Executor) prompts(t *dial.Target, c *conf.Resolved, isHost bool) {
	prompts := c.Number(conf.NumberOfPasswordPrompts)
	if t.Remedy = "give the password with --ask-pass"; e.params.KeyHolder != nil {
		t.Remedy = "begin it on a terminal, where the host can ask"
	}
	switch {
	case isHost && e.params.Password != nil:
		t.Prompter = dial.PasswordAlone{Password: e.params.Password}
	case e.params.Person != nil && prompts > 0:
		t.Prompter, t.Prompts = e.params.Person, prompts
	case !isHost:
		return
	}
	t.PasswordMethods = c.PasswordMethods()
}

var families = map[string]dial.Family{"inet": dial.IPv4, "inet6": dial.IPv6}
