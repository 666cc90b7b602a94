//go:build linux

package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/login"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
	"sshpace/internal/ssh/admit"
)

// LoginParams select the logins that are broken down, and how often.
type LoginParams struct {
	Program string     // ourselves
	Native  bool       // they are our own client's, not ssh's
	Kex     []string   // only these key exchanges: names or globs, with commas
	Factors []string   // only these
	Full    bool       // every key exchange with every host key and every user key
	Plan    login.Plan // without rounds a user's host gets few, the private server a minute
	Tool    string     // for the record
	Output

	asked time.Duration // the budget, of which preparing takes some
}

// ofHosts lists the factors that can be compared on a user's host.
var ofHosts = []string{"kex", "connection", "client", "none"}

// Check refuses contradictions, and on a host everything that needs the private server.
func (p *LoginParams) Check(hostGiven bool) error {
	const onHost = "leave out the host: this is measured on a private server"
	if hostGiven && p.Full {
		return fault.Usage(onHost, "--full on a host")
	}
	for _, name := range p.Factors {
		names := login.FactorNames()
		switch {
		case name != "none" && !slices.Contains(names, name):
			return fault.Usage(fault.Near("", name, names, "use "+strings.Join(names, ", ")), "--only %q", name)
		case p.Native && (name == "connection" || name == "client"):
			return fault.Usage("leave --engine out: it is compared with logins of ssh", "--only %s with --engine native", name)
		case hostGiven && !slices.Contains(ofHosts, name):
			return fault.Usage(onHost, "--only %s on a host", name)
		}
	}
	return nil
}

// few is the default number of logins to a user's host.
const few = 5

// Logins breaks down logins, records them, and reports the results.
func Logins(ctx context.Context, bed *testbed.Testbed, ends *login.Ends, p LoginParams) error {
	if err := p.fits(&record.Campaign{Target: bed.Target, Server: bed.Kind}, &bed.Environment); err != nil {
		return err
	}
	p.Plan.Old = p.old()
	began := time.Now()
	if p.Native {
		ends.Native = p.Program
	}
	kex, err := p.kexNames(bed)
	if err != nil {
		return err
	}
	study := &login.Study{Bed: bed, Ends: ends, Program: p.Program, Factors: p.Factors, Full: p.Full, Kex: kex, Kept: ends.Destination.Master != ""}
	if old := p.Plan.Old; old != nil { // which keeps its kinds of login
		study.Kept = slices.ContainsFunc(old.Logins(), func(s record.Subject) bool { return s.LoginKind.Level == login.KeptLevel })
	}
	defer study.Close()
	cases, err := study.Cases(ctx)
	if err != nil {
		return err
	}
	usual := sched.Rounds{Budget: time.Minute}
	if !ends.Own() {
		p.Plan.Pause, p.Plan.Strict = admit.HostPause, true
		usual = sched.Rounds{Count: few}
	}
	p.Plan.Rounds = cmp.Or(p.Plan.Rounds, usual)
	if p.Plan.List {
		p.announce(cases)
		return listed(p.Output, sched.Rounds{}, func(sink record.Sink) error {
			p.Plan.Note = sink
			return ends.Survey(ctx, cases, p.Plan)
		})
	}
	if p.Plan.RoundTrips, err = ends.RoundTrips(ctx); err != nil {
		return loginFailed(err, bed)
	}
	p.Plan.Conditions = study.Conditions()
	budget := &p.Plan.Rounds.Budget
	p.asked, *budget = *budget, max(*budget/2, *budget-time.Since(began))
	return p.survey(ctx, bed, ends, cases)
}

// survey carries the logins out.
func (p *LoginParams) survey(ctx context.Context, bed *testbed.Testbed, ends *login.Ends, cases []login.Case) error {
	if err := login.Fit(cases, p.Plan.Old); err != nil {
		return fault.Usage("start a new result", "%s cannot be continued: %s", p.File.Name(), err)
	}
	kept, err := p.begin(bed.Target, p.campaign(bed), &bed.Environment)
	if err != nil {
		return err
	}
	defer kept.close()
	if !p.Quiet {
		p.announce(cases)
	}
	p.Plan.Note = kept.sink
	if ends.Own() && p.Plan.Rounds.Budget > 0 {
		if p.Plan.Lanes, err = login.Lanes(cases, bed.Dir.Path); err != nil {
			return err
		}
		defer login.CloseLanes(p.Plan.Lanes)
	}
	err = kept.carry(ctx, "a longer --budget, or more --rounds,", func() error { return ends.Survey(ctx, cases, p.Plan) })
	plain := slices.ContainsFunc(kept.memory.Readings, func(r record.Reading) bool { return r.Subject == 1 && r.Failure == "" })
	if !plain && (err != nil || kept.interrupted) {
		return loginFailed(err, bed)
	}
	if !ends.Own() && err == nil && !kept.interrupted {
		defer fmt.Fprintf(p.Stderr, "to see what can be saved: sshpace doctor %s\n", shell.Line(bed.Destination.Typed()...))
	}
	return cmp.Or(kept.show(format.Logins(kept.memory, false, document.Standard, format.Output{})), loginFailed(err, bed))
}

// campaign describes the measurement.
func (p *LoginParams) campaign(bed *testbed.Testbed) record.Campaign {
	c := record.Campaign{
		Command: "login", Tool: p.Tool, Seed: p.Plan.Seed, Target: bed.Target, Engine: record.EngineOpenSSH, Server: bed.Kind,
		BudgetNS: p.asked, Rounds: p.Plan.Rounds.Count,
	}
	if p.Native {
		c.Engine = record.EngineNative
	}
	c.Asked = map[string][]string{}
	for name, words := range map[string][]string{"kex": p.Kex, "only": p.Factors} {
		if len(words) > 0 {
			c.Asked[name] = words
		}
	}
	if p.Full {
		c.Asked["full"] = []string{"true"}
	}
	return c
}

// fastLogin is the least time of a login of ssh on loopback, on ordinary machines.
const fastLogin = 100 * time.Millisecond

// announce says what is measured, and how long that takes.
func (p *LoginParams) announce(cases []login.Case) {
	fmt.Fprintf(p.Stderr, "%s of login, %s\n", unit.Count(len(cases), "kind"), duration(p.Plan, login.Distinct(cases)))
}

// duration describes the time of a survey: its one round of distinct logins may take longer than
// the budget.
func duration(p login.Plan, distinct int) string {
	switch budget, once := p.Rounds.Budget, time.Duration(distinct)*(p.Pause+fastLogin); {
	case budget == 0:
		return fmt.Sprintf("%s: at least %s", unit.Count(distinct*p.Rounds.Count, "login"), wholeSeconds(time.Duration(p.Rounds.Count)*once))
	case once > budget:
		return unit.Count(distinct, "login") + " at least, which takes longer than the budget"
	default:
		return budget.Round(time.Second).String()
	}
}

// kexNames returns the key exchanges to compare: of a host, only the requested ones.
func (p *LoginParams) kexNames(bed *testbed.Testbed) ([]string, error) {
	if len(p.Kex) == 0 && bed.Kind == record.ServerRemote && !slices.Contains(p.Factors, "kex") {
		return nil, nil
	}
	chosen, _, err := bed.Chosen(testbed.Selection{Patterns: map[alg.Kind][]string{alg.Kex: p.Kex}})
	return chosen.Kex, err
}

// loginFailed words a login that failed.
func loginFailed(err error, bed *testbed.Testbed) error {
	if failed, ok := errors.AsType[*login.FailedError](err); ok {
		d := bed.Destination
		d.Label = bed.Target
		err = bed.SSH.Explain(d, failed.Failed())
		return fault.WithHint(err, "no further login was tried; "+fault.HintOf(err))
	}
	return err
}
