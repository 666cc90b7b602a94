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
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/handshake"
	"sshpace/internal/measure/plan"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
	"sshpace/internal/ssh/openssh"
)

// LoginParams say which logins are taken apart, and how often.
type LoginParams struct {
	Program string         // ourselves
	Native  bool           // they are our own client's, not ssh's
	Kex     []string       // only these key exchanges: names or globs, with commas
	Factors []string       // only these
	Full    bool           // every key exchange with every host key and every user key
	Plan    handshake.Plan // without Rounds and Chosen a host of the user's gets few
	Chosen  bool           // the budget is the user's
	Tool    string         // for the record
	Out     string         // file; "" for one of our own
	Output
}

// few is how often a host of the user's is logged in to where nobody says it.
const few = 5

// Logins takes logins apart, records them, and reports what there is.
func Logins(ctx context.Context, bed *testbed.Testbed, ends *handshake.Ends, p LoginParams) error {
	if p.Out != "" {
		if err := store.CheckNew(p.Out, store.AnotherName); err != nil {
			return err
		}
	}
	began := time.Now()
	if p.Native {
		ends.Native = p.Program
	}
	kex, err := p.kexNames(bed)
	if err != nil {
		return err
	}
	study := &handshake.Study{Bed: bed, Ends: ends, Program: p.Program, Factors: p.Factors, Full: p.Full, Kex: kex}
	defer study.Close()
	cases, err := study.Cases(ctx)
	if err != nil {
		return err
	}
	if !ends.Own() {
		p.Plan.Pause, p.Plan.Strict = openssh.HostPause, true
		if p.Plan.Rounds == 0 && !p.Chosen {
			p.Plan.Rounds = few
		}
	}
	if p.Plan.RoundTrips, err = ends.RoundTrips(ctx); err != nil {
		return loginFailed(err, bed.Target)
	}
	p.Plan.Conditions = study.Conditions()
	p.Plan.Budget -= time.Since(began)
	return p.survey(ctx, bed, ends, cases)
}

// survey carries the logins out.
func (p *LoginParams) survey(ctx context.Context, bed *testbed.Testbed, ends *handshake.Ends, cases []handshake.Case) error {
	file, err := p.Store.Create(p.Out, bed.Target)
	if err != nil {
		return err
	}
	defer file.Close()
	kept, err := keep(p.Output, file, p.campaign(bed), &bed.Environment)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Stderr, "%s of login, %s\n", unit.Count(len(cases), "kind"), duration(p.Plan, handshake.Distinct(cases)))
	p.Plan.Note = kept.sink
	if ends.Own() && p.Plan.Rounds == 0 {
		if p.Plan.Lanes, err = handshake.Lanes(cases, bed.Rig.Dir.Path); err != nil {
			return err
		}
		defer handshake.CloseLanes(p.Plan.Lanes)
	}
	_, err = ends.Survey(ctx, cases, p.Plan)
	why := plan.EndComplete
	if errors.Is(err, context.Canceled) {
		why = plan.EndInterrupted
	}
	if ended := kept.end(why); ended != nil {
		return ended
	}
	plain := slices.ContainsFunc(kept.memory.LoginRuns, func(l record.WatchedLogin) bool { return l.Kind == 1 })
	if err != nil && (why == plan.EndComplete || !plain) {
		return loginFailed(err, bed.Target)
	}
	return cmp.Or(kept.show(&format.Logins{Records: kept.memory}), err)
}

// campaign says what is measured.
func (p *LoginParams) campaign(bed *testbed.Testbed) record.Campaign {
	c := record.Campaign{
		Tool: p.Tool, Seed: p.Plan.Seed, Target: bed.Target, Engine: record.EngineOpenSSH, Server: bed.Server,
		BudgetNS: p.Plan.Budget, Rounds: p.Plan.Rounds,
	}
	if p.Native {
		c.Engine = record.EngineNative
	}
	return c
}

// duration says how long a survey takes.
func duration(p handshake.Plan, distinct int) string {
	if p.Rounds == 0 {
		return p.Budget.Round(time.Second).String()
	}
	return fmt.Sprintf("%d logins", distinct*p.Rounds)
}

// kexNames are the key exchanges to compare: of a host, only those that are
// asked for.
func (p *LoginParams) kexNames(bed *testbed.Testbed) ([]string, error) {
	if len(p.Kex) == 0 && bed.Server == record.ServerRemote && !slices.Contains(p.Factors, "kex") {
		return nil, nil
	}
	offer, err := bed.Shared()
	if err != nil || len(p.Kex) == 0 {
		return offer.Kex, err
	}
	wanted := strings.Join(p.Kex, ",")
	patterns := strings.Split(wanted, ",")
	names := slices.DeleteFunc(slices.Clone(offer.Kex), func(name string) bool { return !alg.Match(patterns, name) })
	if len(names) == 0 {
		return nil, fault.Usage("there are "+strings.Join(offer.Kex, ", "), "no key exchange is called %s", wanted)
	}
	return names, nil
}

// loginFailed words a login that failed.
func loginFailed(err error, target string) error {
	if failed, ok := errors.AsType[*handshake.FailedError](err); ok {
		hint := cmp.Or(fault.HintOf(err), "nothing more was tried; see what ssh says: ssh -v "+target)
		return fault.WithHint(fmt.Errorf("%s: %s", target, termsafe.OneLine(failed.Error())), hint)
	}
	return err
}
