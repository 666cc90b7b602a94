package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/proc"
)

// jobFlags are the flags of a run that launchers carry out.
type jobFlags struct {
	hubFlags
	pool, pools string
	idempotent  bool
	signKey     string
	expires     seconds
}

func (f *jobFlags) register(flags *pflag.FlagSet) {
	f.hubFlags.register(flags)
	flags.StringVar(&f.pool, "pool", "", "with --hub: the pool whose launchers reach the hosts")
	flags.StringVar(&f.pools, "pools", "", "with --hub: file of lines pool: set, which has each host in one pool")
	flags.BoolVar(&f.idempotent, "idempotent", false, "with --hub: run the command again on hosts whose launcher was lost while it may have run")
	flags.StringVar(&f.signKey, "sign-key", "", "with --hub: file of the key that signs the job, or its public half for a key of the agent (default the first one of the agent, otherwise the first one of ~/.ssh)")
	f.expires = seconds(24 * time.Hour)
	flags.Var(&f.expires, "expires", "with --hub: start no host after this time")
}

// ofLaunchers are flags that only the launchers' own ssh_config can stand for, or that need this
// process, with what to do instead.
var ofLaunchers = map[string]string{
	"config": "put it into the ssh_config of the launchers", "option": "put it into the ssh_config of the launchers",
	"identity": "launchers log in with their own keys", "jump": "put it into the ssh_config of the launchers, who may need none",
	"ipv4": "put AddressFamily into the ssh_config of the launchers", "ipv6": "put AddressFamily into the ssh_config of the launchers",
	"accept-new": "launchers have known_hosts of their own; sshpace known-hosts scan there fills them",
	"ask-pass":   "no password goes through a hub; use keys", "password-command": "no password goes through a hub; sudo needs NOPASSWD there",
	"wait-for-reboot": "run it on a launcher", "every": "repeat the whole command", "dry-run": "--list shows the hosts",
}

// checkHub refuses flags that do not go together with a hub.
func (f *runFlags) checkHub(sys System, flags *pflag.FlagSet) (err error) {
	if !f.job.given() {
		for _, name := range []string{"pool", "pools", "idempotent", "sign-key", "expires"} {
			if flags.Changed(name) {
				return usageError("such as --hub ssh://HOST --pool web", "--%s is for --hub", name)
			}
		}
		return nil
	}
	flags.Visit(func(flag *pflag.Flag) {
		if instead, refused := ofLaunchers[flag.Name]; refused {
			err = cmp.Or(err, usageError(instead, "--%s does not travel to launchers", flag.Name))
		}
	})
	if (f.job.pool == "") == (f.job.pools == "") {
		err = cmp.Or(err, usageError("such as --pool web, for launchers of sshpace work --pool web", "--hub needs --pool or --pools"))
	}
	if !flags.Changed("keep-output") {
		f.keepOutput = detachedOutput // jobs shows it
	}
	if err == nil {
		err = sys.needHub() // before anything is read from standard input
	}
	return err
}

// travelling returns the hosts as launchers get them, with -l and -p.
func (f *runFlags) travelling(hosts []host.Host) error {
	for i := range hosts {
		h := &hosts[i]
		if h.Settings != "" {
			return usageError("put them into the ssh_config of the launchers, or leave the inventory out", "%s has settings of an inventory, which do not travel to launchers", h)
		}
		if f.connection.User != "" {
			h.User, h.Known = f.connection.User, false
		}
		h.Port = cmp.Or(f.connection.Port, h.Port)
		if again, err := host.Parse(h.Exact()); err != nil || again.Endpoint() != h.Endpoint() {
			return usageError("put the user into the ssh_config of the launchers", "launchers would take the host %s for another", h.Exact())
		}
	}
	return nil
}

// poolOf returns what the pool of each host is.
func (f *runFlags) poolOf(ctx context.Context, sys System, t *task) (func(host.Host) string, error) {
	if f.job.pools == "" {
		return func(host.Host) string { return f.job.pool }, job.CheckName("pool", f.job.pool)
	}
	in, err := os.Open(f.job.pools)
	if err != nil {
		return nil, &Error{Err: err, Hint: "--pools names a file of lines such as web: web[1-20],@web", Code: ExitUsage}
	}
	defer in.Close()
	groups, err := f.selection.Open(ctx, surroundings(sys, t.store, t.reach.Router))
	if err != nil {
		return nil, err
	}
	pools, err := job.ReadPools(in, f.job.pools, groups.Groups)
	if err == nil {
		err = pools.Check(t.hosts, f.job.pools)
	}
	return pools.Of, err
}

// plan returns the job of a task.
func (f *runFlags) plan(ctx context.Context, sys System, t *task) (p job.Plan, err error) {
	p.Hosts, p.Sizes, p.Expires = t.hosts, f.pace.Sizes(len(t.hosts)), time.Duration(f.job.expires)
	if p.Pool, err = f.poolOf(ctx, sys, t); err != nil {
		return p, err
	}
	p.Spec = job.Spec{
		Text: t.command.Text, Line: t.command.Line, Terminal: f.tty, Sudo: f.secrets.User, Idempotent: f.job.idempotent,
		TimeoutNS: int64(f.timeout), ConnectTimeoutNS: int64(f.connectTimeout), RetryForNS: int64(f.retryFor), RetryDown: f.retryFor > 0,
		SplayNS: int64(f.pace.Splay), MaxOutput: int64(f.maxOutput), Fanout: f.fanout, Engine: f.engine, NoRemoteKill: f.noRemoteKill,
	}
	if t.input != nil {
		in := t.input.Reader()
		defer in.Close()
		defer context.AfterFunc(ctx, func() { in.Close() })()
		if p.Spec.Input, err = file.ReadAll(in, "standard input", job.MaxInput); err != nil {
			return p, withHint(err, "copy a large input to the hosts first: sshpace copy")
		}
	}
	if t.own != nil {
		p.Line = func(h host.Host) string { return t.own(t.command, h).Line }
		for _, h := range t.hosts {
			if _, apart := t.own(t.command, h).Input.(fleet.Prefixed); apart {
				return p, usageError("leave --expand out, or run it without --hub", "--expand with a script, or with values of special characters, gives each host an input of its own, which does not travel")
			}
		}
	}
	p.Sign = func(ctx context.Context, manifest []byte) ([]byte, error) {
		return job.Sign(ctx, f.job.signKey, sys.Getenv, manifest, sys.Stderr)
	}
	return p, nil
}

// office carries a run out over a hub.
type office struct {
	sys     System
	bus     job.Bus
	plan    job.Plan
	people  job.People
	end     string      // random, of the job's ID
	client  *job.Client // nil until the job is published
	viewing bool        // an interrupt leaves the job
}

// newOffice connects to the hub with the job of a task.
func (f *runFlags) newOffice(ctx context.Context, sys System, t *task) (o *office, err error) {
	o = &office{sys: sys, people: f.people(sys), end: strings.ToLower(rand.Text()[:6])}
	if o.plan, err = f.plan(ctx, sys, t); err == nil {
		o.bus, err = f.job.bus(ctx, sys, connectionFlags{}, job.RoleClient)
	}
	t.how.Job = o.end
	return o, err
}

// takeUp continues a job whose client was lost, and completes its record.
func (f *runFlags) takeUp(ctx context.Context, sys System, store *history.Store, rec *history.Record) error {
	run, err := f.ofRecord(rec)
	if err != nil {
		return err
	}
	t := &task{how: rec.How, store: store, resumed: rec, command: fleet.Command{Text: rec.Command}}
	return run.attach(ctx, sys, t, rec.OfHub(), false)
}

// ofRecord returns flags that continue a recorded job of a hub.
func (f *runFlags) ofRecord(rec *history.Record) (*runFlags, error) {
	run, flags := &runFlags{view: f.view, maxrc: f.maxrc}, pflag.NewFlagSet("", pflag.ContinueOnError)
	run.pace.register(flags)
	run.job.register(flags)
	run.pace.yes = f.pace.yes
	names := slices.DeleteFunc(slices.Concat(ofConnection, ofCommand), func(name string) bool { return flags.Lookup(name) == nil })
	if err := setFlags(flags, names, rec.How.Flags); err != nil {
		return nil, &Error{Err: err, Hint: "run " + rec.ID + " was recorded by another version", Code: ExitUsage}
	}
	return run, nil
}

// attach runs a task, or looks at it, as a client of a job that the hub keeps.
func (f *runFlags) attach(ctx context.Context, sys System, t *task, id string, looks bool) error {
	bus, err := f.job.bus(ctx, sys, connectionFlags{}, job.RoleClient)
	if err != nil {
		return err
	}
	t.office = &office{sys: sys, bus: bus, people: f.people(sys), viewing: true}
	defer t.close()
	var spec *job.Spec
	if t.office.client, spec, err = job.Attach(ctx, bus, id, looks, t.office.people); err != nil {
		return err
	}
	t.hosts, t.command.Text = t.office.client.Hosts, cmp.Or(t.command.Text, spec.Text)
	if rec := t.resumed; rec != nil && hostset.Fold(host.Exacts(t.hosts)) != hostset.Fold(rec.Hosts) {
		return withHint(fmt.Errorf("the hosts of job %s are not those of run %s", id, rec.ID), "the hub is not the one to which the job was given")
	}
	return t.run(ctx, sys, f)
}

// open publishes the job, unless it is there, and returns what runs and shows it. Launchers limit
// the run themselves. drain and hard are those of interrupts.
func (o *office) open(hard context.Context, p *fanout.Params, recorder *history.Recorder, view fleet.Sink) (fleet.Executor, fleet.Sink, error) {
	drain, record := p.Drain, fleet.Sink(fleet.Nothing{})
	if recorder.ID != "" {
		record = recorder
	}
	if o.client == nil {
		o.plan.Spec.ID = cmp.Or(recorder.ID, file.Stamp(time.Now())) + "-" + o.end
		var err error
		if o.client, err = job.Publish(drain, o.bus, o.plan, o.people); err != nil {
			return nil, nil, err
		}
	}
	polite, stop := context.WithCancelCause(context.WithoutCancel(hard))
	leave := func() {
		o.client.Leave(job.ErrLeft)
		stop(job.ErrLeft)
	}
	context.AfterFunc(drain, func() {
		switch s := proc.CaughtBy(drain); {
		case s == nil: // the run is over
		case o.viewing || s == syscall.SIGHUP:
			leave()
		default:
			o.sys.screen().Notice(stopping)
			stop(fleet.ErrInterrupted)
		}
	})
	context.AfterFunc(hard, func() {
		if proc.CaughtBy(hard) != nil {
			leave()
		}
	})
	p.Drain, p.Fanout, p.CommandTimeout, p.MaxOutput, p.RetryFor, p.RetryDown, p.Resources = polite, 0, 0, 0, -1, false, &fanout.Resources{}
	p.Pace.Splay, p.Pace.Begun = 0, o.client.Begun
	return o.client, o.client.Sink(view, record), nil
}

// left says that the job goes on, and returns why if nobody asked for that. id is that of the run.
func (o *office) left(id string) error {
	err := o.client.Left()
	switch {
	case err == nil:
		return nil
	case err != job.ErrLeft:
		return withHint(err, "sshpace jobs "+cmp.Or(id, o.client.ID)+" goes on with it")
	}
	o.sys.screen().Notice("sshpace: the job goes on; sshpace jobs " + cmp.Or(id, o.client.ID) + " shows it")
	return nil
}

func (o *office) close() {
	if o.client != nil {
		o.client.Close()
	}
	if o.bus != nil {
		o.bus.Close()
	}
}

// people returns who watches a job.
func (f *runFlags) people(sys System) job.People {
	by, _ := os.Hostname() // for people
	if me, err := user.Current(); err == nil {
		by = me.Username + "@" + by
	}
	return job.People{By: by, Notice: func(text string) {
		if !f.view.Quiet {
			sys.screen().Notice("sshpace: " + oneLine(text))
		}
	}}
}
