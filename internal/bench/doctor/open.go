//go:build linux

package doctor

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/login"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
)

// Params describe the host and the login to examine.
type Params struct {
	testbed.Params              // without a destination
	Host           string       // as the user names it; "" for a private server
	Logins         sched.Rounds // rounds that measure its duration; none: a few
	Progress       func(what string)
}

// The default number of measured plain logins.
var (
	hostLogins    = sched.Rounds{Count: 3}
	privateLogins = sched.Rounds{Count: 5}
)

// Open prepares a patient, and returns the facts that are known without a login. The caller closes
// it.
func Open(ctx context.Context, p Params) (*Patient, *Facts, error) {
	if p.Host == "" {
		return openPrivate(ctx, p)
	}
	return openHost(ctx, p)
}

// Close ends what was started.
func (p *Patient) Close() error {
	if p.close == nil {
		return nil
	}
	return p.close()
}

func openHost(ctx context.Context, p Params) (*Patient, *Facts, error) {
	d, err := route.Destination(p.Route.Flags, p.Host)
	if err != nil {
		return nil, nil, err
	}
	ssh, err := openssh.FindClient(ctx, p.SSH)
	if err != nil {
		return nil, nil, err
	}
	h, err := host.Parse(d.Label)
	if err != nil {
		return nil, nil, err
	}
	router, err := route.New(ctx, p.Route)
	if err != nil {
		return nil, nil, err
	}
	found, err := router.Route(ctx, h)
	if err != nil {
		return nil, nil, route.ResolveError(err, h.Name)
	}
	facts := &Facts{Destination: d}
	facts.configured(found.Host, router.Master(found.Host))
	for _, jump := range found.Host.ProxyJump() {
		facts.Jumps = append(facts.Jumps, jump.Name)
	}
	ends := login.Ends{Bed: bed.Bed{SSH: ssh, Destination: router.ThroughJumps(found, ssh, d, p.Connect), Connect: cmp.Or(p.Route.ConnectTimeout, p.Connect)}, Dir: p.Dir.Path}
	ours := ends.Connect // for each address: to see which of them are dead
	if own := found.Host.Duration(conf.ConnectTimeout); own > 0 && p.Route.ConnectTimeout == 0 {
		ends.Destination.Connect, ends.Connect, ours = own, max(own, p.Connect), 0
	}
	return &Patient{Ends: ends, ours: ours, ticket: admit.New(admit.OneByOne(admit.HostPause)).Ticket(), Logins: cmp.Or(p.Logins, hostLogins), Progress: p.Progress}, facts, nil
}

// configured records the settings for the host, and what is where its master may listen.
func (f *Facts) configured(c *conf.Resolved, path string) {
	f.KnownAs, f.Port = cmp.Or(c.Word(conf.HostKeyAlias), knownhosts.HostPort(c.HostName(), c.Port())), c.Port()
	set := func(k conf.Keyword) bool {
		v, ok := c.Get(k)
		return ok && len(v.Args) > 0 && !slices.Contains([]string{"no", "false", "none"}, v.Args[0])
	}
	f.KeyFiles, f.updates = c.Files(conf.UserKnownHostsFile), c.Yes(conf.UpdateHostKeys)
	for _, k := range []conf.Keyword{conf.KnownHostsCommand, conf.VerifyHostKeyDNS} {
		if v, _ := c.Get(k); set(k) {
			f.Asks = append(f.Asks, Setting{k, strings.Join(v.Args, " "), v.Origin.String()})
		}
	}
	f.Sharing.Master, f.Sharing.Persist = set(conf.ControlMaster), set(conf.ControlPersist)
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		f.Master = &Master{Path: path, Unset: c.Word(conf.ControlPath) == "", Age: max(0, time.Since(info.ModTime()))}
	}
}

// openPrivate makes our own server the patient, and returns the facts that are known without a
// login. The user's own configuration for localhost leads to it.
func openPrivate(ctx context.Context, p Params) (*Patient, *Facts, error) {
	p.Everything = true
	private, err := testbed.Open(ctx, p.Params)
	if err != nil {
		return nil, nil, err
	}
	private.Server.Fresh(false) // as any host's: with the waits for acknowledgements
	localhost := openssh.Destination{Host: "localhost", Label: record.Loopback, Flags: p.Route.Flags}
	there := private.Destination
	to := localhost.With("HostName="+there.Host, "HostKeyAlias="+loopback.Alias, "ProxyCommand=none",
		"UserKnownHostsFile="+private.Keys.KnownHosts, "GlobalKnownHostsFile=none")
	to.Port, to.User, to.Jump, to.Identities = there.Port, there.User, "", append(slices.Clone(to.Identities), there.Identities...)
	router, err := route.New(ctx, p.Route)
	if err != nil {
		return nil, nil, errors.Join(err, private.Close())
	}
	own, err := router.Route(ctx, host.Host{Name: "localhost"})
	if err != nil {
		return nil, nil, errors.Join(route.ResolveError(err, "localhost"), private.Close())
	}
	facts := &Facts{Destination: localhost, Own: true, KnownAs: "localhost"}
	facts.configured(own.Host, "") // no master is of the real localhost
	ends := login.Ends{Bed: bed.Bed{SSH: private.SSH, Destination: to, Connect: p.Connect}, Dir: p.Dir.Path}
	return &Patient{Ends: ends, Logins: cmp.Or(p.Logins, privateLogins), Progress: p.Progress, close: private.Close}, facts, nil
}
