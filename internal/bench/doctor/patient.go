//go:build linux

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Patient is a login: client, user and host.
type Patient struct {
	login.Ends              // with the jump hosts of the route
	Logins     sched.Rounds // that measure its duration
	Progress   func(what string)

	ours   time.Duration // ssh's ConnectTimeout where the user has none; 0: it is the user's
	close  func() error
	facts  *Facts
	ticket *admit.Ticket // of logins; nil: to a private server
	made   int           // logins so far
	latest *login.Login
}

// Probe measures some of the facts.
type Probe string

// The probes.
const (
	LoggingIn Probe = "logins"
	Masters   Probe = "masters"   // the socket at ControlPath
	Shared    Probe = "shared"    // sessions over our own master, and the server's answers there
	HostKeys  Probe = "hostkeys"  // large files of host keys; no login
	Exchanges Probe = "exchanges" // another key exchange, where the present one is slow
	Moving    Probe = "moving"    // short transfers
)

// probes lists the work of each probe, in the order in which they run.
var probes = []struct {
	probe Probe
	does  func(*Patient, context.Context) error
}{
	{Masters, (*Patient).masters},
	{LoggingIn, (*Patient).logins},
	{Shared, (*Patient).shared},
	{HostKeys, (*Patient).hostKeys},
	{Exchanges, (*Patient).exchanges},
	{Moving, (*Patient).moving},
}

// Examine carries out probes and fills in facts; these hold the measurements so far whenever it
// returns: at the end, when ctx ends, or with an error.
func (p *Patient) Examine(ctx context.Context, wanted []Probe, facts *Facts) error {
	p.facts = facts
	for _, probe := range probes {
		if !slices.Contains(wanted, probe.probe) || facts.Refusal != nil || facts.Stuck != nil {
			continue
		}
		if err := probe.does(p, ctx); err != nil {
			return p.refused(err)
		}
		if ctx.Err() != nil {
			return context.Canceled
		}
	}
	return nil
}

// ends returns client and server under the user's own configuration, as far as they work without a
// person.
func (p *Patient) ends() *login.Ends {
	ends := p.Ends
	ends.Destination = p.Destination.Verbose()
	ends.Destination.Instead = map[string]string{"Compression": ""}
	return &ends
}

// logins logs in several times, and fills the facts with the time of each step.
func (p *Patient) logins(ctx context.Context) error {
	var all []*trace
	ends := p.ends()
	one := func(round int, argv login.ArgvFunc) error {
		p.Progress("login: " + p.Logins.Progress(round+1))
		l, err := p.login(ctx, ends, argv)
		if l != nil && err != nil && len(all) == 0 {
			p.facts.Logins.Keys = keys([]*trace{read(l)}) // may be why
		}
		if err != nil {
			return err
		}
		all = append(all, read(l))
		p.facts.Logins = fold(all)
		for i, a := range p.facts.Logins.Failed {
			p.facts.Logins.Failed[i].Cut = p.ours > 0 && a.Took.Lo >= float64(p.ours)
		}
		return nil
	}
	before, known := proc.ReadLoad()
	began := time.Now()
	plain := []login.ArgvFunc{ends.Argv(alg.Suite{}, "true")}
	err := sched.Loop[login.ArgvFunc]{Rounds: p.Logins, Due: func(int) []login.ArgvFunc { return plain }, Take: one}.Run(ctx)
	if after, still := proc.ReadLoad(); known && still {
		p.facts.Busy = float64(after.Busy-before.Busy) / float64(time.Since(began)) / float64(runtime.NumCPU())
	}
	if err == nil {
		p.facts.Route = routeTo(ctx, p.facts.Logins.Address)
	}
	return err
}

// login waits until the next login is polite, and makes it.
func (p *Patient) login(ctx context.Context, ends *login.Ends, argv login.ArgvFunc) (*login.Login, error) {
	if p.ticket.Admit(ctx, p.Destination.Label) != nil {
		return nil, context.Canceled
	}
	l, err := ends.Watch(ctx, argv)
	p.ticket.End(admit.Done)
	p.latest = l
	if failed, ok := errors.AsType[*login.FailedError](err); ok && failed.Status > 0 {
		p.facts.NoCommands, err = &NoCommands{failed.Status, failed.Said}, nil
	}
	if err == nil {
		p.made++
	}
	return l, err
}

// refused turns the refusal of too many logins into a fact; any other failure stays an error.
func (p *Patient) refused(err error) error {
	failed, ok := errors.AsType[*login.FailedError](err)
	if !ok {
		return p.explained(err)
	}
	said := p.said()
	cause, _ := openssh.CauseOf([]string{failed.Said})
	r := &Refusal{Said: failed.Said, After: p.made}
	first, _ := openssh.CauseOf([]string{said})
	r.Startup, r.Penalty = first == openssh.Throttled, first == openssh.Penalized
	if r.Startup || r.Penalty { // better than the words of ssh
		r.Said = fmt.Sprintf("the server said %q", said)
	}
	switch {
	case failed.During == record.PhaseVersion && said != "" && !r.Startup && !r.Penalty:
		foreign := (&openssh.Negotiation{Foreign: said}).NotSSH()
		return p.withHint(openssh.Failed{Said: foreign, Cause: openssh.NotSSH})
	case failed.Late && !p.facts.Own && slices.Contains(waiting, failed.During):
		p.stuck(failed)
		return nil
	case failed.Late:
		return p.explained(err)
	case cause == openssh.TooManyKeys:
		r.TooMany = true
	case failed.During == record.PhaseVersion && (cause == openssh.NoVersion || cause == openssh.HungUp || cause == openssh.Throttled || cause == openssh.Penalized):
	default:
		return p.explained(err)
	}
	p.facts.Refusal = r
	return nil
}

// waiting lists the phases in which a server that speaks SSH keeps a login waiting. In an earlier
// one there may be no server, in Service an agent may be silent.
var waiting = []login.Phase{
	record.PhaseKexInit, record.PhaseKex, record.PhaseHostKey, record.PhaseNewKeys, record.PhaseAuthNone, record.PhaseQuery, record.PhaseSign,
	record.PhaseChannel, record.PhaseExec, record.PhaseCommand,
}

// stuck turns a login that hung into a fact.
func (p *Patient) stuck(failed *login.FailedError) {
	t := read(p.latest)
	_, signed := t.spans[signing]
	s := &Stuck{During: failed.During, Signed: signed, After: failed.After, Got: t.negotiation.Got}
	if mine, err := p.SSH.Query(context.Background()); err == nil {
		if s.Others = mine.Kex; len(t.negotiation.Server.Kex) > 0 {
			s.Others = mine.Intersect(t.negotiation.Server).Kex
		}
	}
	p.facts.Stuck = s
}

// said returns the text that the server sent before it closed the connection without a version
// line.
func (p *Patient) said() string {
	if p.latest == nil {
		return ""
	}
	line, _ := p.latest.First(openssh.PreBanner)
	return line.Text
}

// explained adds a remedy to a failed login.
func (p *Patient) explained(err error) error {
	failed, ok := errors.AsType[*login.FailedError](err)
	if !ok {
		return err
	}
	return p.withHint(failed.Failed())
}

func (p *Patient) withHint(why openssh.Failed) error {
	err := p.SSH.Explain(p.facts.Destination, why)
	return fault.WithHint(err, "nothing more was tried; "+fault.HintOf(err))
}

// routeTo returns this machine's route to an address (ip-route(8)); "" for none.
func routeTo(ctx context.Context, address string) string {
	if address == "" {
		return ""
	}
	out, err := exec.CommandContext(ctx, "ip", "route", "get", address).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}
