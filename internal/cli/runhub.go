package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	"sshpace/internal/fleet/output"
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
	"ask-pass": "no password goes through a hub; use keys", "password-command": "no password goes through a hub; sudo needs NOPASSWD there",
	"wait-for-reboot": "run it on a launcher", "every": "repeat the whole command", "dry-run": "--list shows the hosts",
}

// checkHub refuses flags that do not go together with a hub.
func (f *runFlags) checkHub(flags *pflag.FlagSet) (err error) {
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
			return usageError("put the user into the ssh_config of the launchers", "launchers cannot be told of the host %s", h.Exact())
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

// people returns who watches a job.
func (f *runFlags) people(sys System) job.People {
	machine, _ := os.Hostname() // for people
	return job.People{By: sys.Getenv("USER") + "@" + machine, Notice: f.notice(sys)}
}

// notice shows what is not about one host.
func (f *runFlags) notice(sys System) func(string) {
	return func(text string) {
		if !f.view.Quiet {
			sys.screen().Notice("sshpace: " + oneLine(text))
		}
	}
}
