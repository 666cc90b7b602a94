//go:build linux

// Package campaign carries a measurement through: the plan, the records as they are made, a live
// view, the limit of a transfer, and the report at the end.
package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/drive"
	"sshpace/internal/bench/hostinfo"
	"sshpace/internal/bench/lab"
	"sshpace/internal/bench/plan"
	"sshpace/internal/bench/rank"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
	"sshpace/internal/show/live"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/sys/terminal"
)

// Params describe the measurement beyond a testbed's own properties. The campaign has seed,
// directions, data, policy, budget and the like.
type Params struct {
	Campaign    record.Campaign
	Selection   testbed.Selection
	Connections int  // at a time, at most; 0: the testbed's capacity
	Preset      bool // which cipher ssh takes by itself is not to be asked
	Output
}

// Run is everything that a measurement needs, checked.
type Run struct {
	Params
	bed   *testbed.Testbed
	plan  plan.Plan
	looks bool // at the limit of a transfer, in the end
}

// New makes the plan. A resumed result brings its own offer.
func New(ctx context.Context, bed *testbed.Testbed, p Params) (*Run, error) {
	if p.File != nil {
		p.Selection = testbed.Selection{}
	}
	offer, shared, err := bed.Chosen(p.Selection)
	if err != nil {
		return nil, err
	}
	c := &p.Campaign
	c.Target, c.Engine, c.Server, c.Shared = bed.Target, bed.Engine, bed.Kind, shared
	if err := p.fits(c, &bed.Environment); err != nil {
		return nil, err
	}
	if p.File != nil {
		offer = p.File.Old.Campaign.Offer
	}
	c.Present = bed.Present(ctx)
	if p.File == nil && c.SizeBytes == 0 {
		offer = offer.With(c.Present.Bulk(), shared) // the reference of all others, in every selection
	}
	c.Offer, c.Combos = offer, alg.Fold(offer).Combinations()
	capacity := bed.Driver.Capacity()
	if p.Connections > 0 {
		capacity = min(capacity, p.Connections)
	}
	env := plan.Environment{Cores: bed.Environment.Cores, Capacity: capacity, Login: bed.Login, RoundTrip: bed.Environment.RoundTripNS}
	made, looks, err := planned(*c, env)
	if short, ok := errors.AsType[*plan.BudgetError](err); ok {
		return nil, fault.Usage(fmt.Sprintf("a login takes %s there: use --budget %s or more", short.Login.Round(time.Millisecond), wholeSeconds(short.Least)), "--budget %s", short)
	}
	if err != nil {
		return nil, fault.Usage("allow more algorithms", "%s", err)
	}
	return &Run{p, bed, made, looks}, nil
}

// planned makes the plan. On a host the budget includes the login before it, and the look at the
// limit of a transfer after it, if there is time for that.
func planned(c record.Campaign, env plan.Environment) (made plan.Plan, looks bool, err error) {
	looks = c.BudgetNS >= limitBudget
	if c.Server != record.ServerRemote || c.BudgetNS == 0 {
		made, err = plan.New(c, env)
		return made, looks, err
	}
	c.BudgetNS = max(1, c.BudgetNS-env.Login)
	if short, kept := c, env; looks {
		short.BudgetNS -= limitTime + limitLogins*env.Login
		kept.Kept = limitLogins
		if made, err = plan.New(short, kept); err == nil {
			return made, true, nil
		}
	}
	made, err = plan.New(c, env)
	if short, ok := errors.AsType[*plan.BudgetError](err); ok {
		short.Budget += env.Login
		short.Least += env.Login
	}
	return made, false, err
}

// Do measures, writes the records and reports. drain ends when the run should finish early, ctx
// when it must stop at once.
func (j *Run) Do(ctx, drain context.Context) error {
	kept, err := j.begin(j.bed.Target, j.Campaign, &j.bed.Environment, append(j.bed.Findings, j.bed.OneSided()...)...)
	if err != nil {
		return err
	}
	defer kept.close()
	memory, params := kept.memory, lab.Params{Target: j.bed.Target, Drain: drain}
	if j.File != nil {
		params.Elapsed = memory.Measured()
		j.announce(params.Elapsed)
	}
	j.plan.Begin(memory)
	view := live.New(live.Params{
		Screen: j.Screen, Quiet: j.Quiet, Progress: j.plan.Progress, Load: hostinfo.Load, File: memory, Now: time.Now,
	})
	sink := record.Tee(kept.sink, view.Sink)
	heat := &hostinfo.Thermometer{Root: "/sys", Firmware: hostinfo.Vcgencmd, Sink: sink, Now: time.Now}
	measured := record.Sink(heat.Record)
	if j.bed.Kind != record.ServerRemote {
		measured = (&hostinfo.ForeignLoad{Used: hostinfo.Used, Now: time.Now, Sink: heat.Record}).Record
	}
	if err := heat.Begin(); err != nil {
		return err
	}
	before := made(memory)
	runErr := lab.Run(ctx, params, j.plan, j.bed.Driver, measured)
	_ = j.Screen.Draw()
	if runErr == nil && drain.Err() == nil && j.mayLook(memory) {
		runErr = j.limits(ctx, sink)
	}
	ending, reportable := j.ending(drain, runErr)
	if !reportable {
		return kept.broken(j.bed.Explain(runErr))
	}
	if made(memory) == before && drain.Err() == nil && runErr == nil {
		fmt.Fprintln(j.Stderr, nothingLeft[ending])
		if ending == plan.EndBudget {
			memory.Campaign.BudgetNS = j.Campaign.BudgetNS
			flag, takes := document.Longer(memory, 2)
			fmt.Fprintf(j.Stderr, "continue with: %s %s (%s)\n", kept.goOn(), flag, takes)
		}
	}
	if err := cmp.Or(heat.End(), kept.end(ending)); err != nil {
		return err
	}
	return j.report(kept, drain, runErr)
}

// limitBudget is the length of a run from which on it looks for its limit: that takes some seconds.
const (
	limitBudget = 10 * time.Second
	limitTime   = 3 * time.Second
	limitLogins = 3
)

// mayLook reports whether there is time to look for the limit of a transfer, and the host allows
// the logins for that.
func (j *Run) mayLook(f *record.File) bool {
	logins := 1 + limitLogins
	for _, s := range f.Samples {
		if f.Trials[s.Trial].Shares == 0 {
			logins++
		}
	}
	return j.looks && (j.bed.Kind != record.ServerRemote || logins <= admit.MostLogins(j.Campaign.BudgetNS))
}

// limits looks for the limit of a transfer, with ssh's default cipher or the first of the requested
// ones.
func (j *Run) limits(ctx context.Context, sink record.Sink) error {
	if j.bed.Engine != record.EngineOpenSSH || j.bed.Kind == record.ServerNative || len(j.Campaign.Offer.Ciphers) == 0 {
		return nil
	}
	var suite alg.Suite
	if j.Preset {
		suite = alg.Fold(j.Campaign.Offer).Bulk[0]
	}
	ground := transfer.Look(j.bed, j.bed.Dir.Path)
	return ground.Limits(ctx, transfer.Options{Suite: suite}, j.Campaign.Directions, sink)
}

// announce reports the rest of a budget, of which earlier sittings took elapsed.
func (j *Run) announce(elapsed time.Duration) {
	if budget := j.Campaign.BudgetNS; budget > elapsed && !j.Quiet {
		fmt.Fprintf(j.Stderr, "%s of %s are left: --budget is for all runs of this result together\n", wholeSeconds(budget-elapsed), budget)
	}
}

// nothingLeft explains why a run made no trial.
var nothingLeft = map[plan.Ending]string{
	plan.EndBudget:    "nothing left to do: --budget is for all runs of this result together, and is used up; give a longer one",
	plan.EndPrecision: "nothing left to do; give a smaller --precision to continue",
	plan.EndComplete:  "nothing left to do: everything has been measured",
	plan.EndFailures:  "nothing left to do",
}

// ending returns why the run ended. The measurements can be reported, unless the lab itself broke.
func (j *Run) ending(drain context.Context, runErr error) (ending plan.Ending, reportable bool) {
	_, gaveUp := errors.AsType[*drive.HostError](runErr)
	switch {
	case drain.Err() != nil, errors.Is(runErr, live.ErrUnwatched):
		return plan.EndInterrupted, true
	case gaveUp:
		return plan.EndFailures, true
	}
	return j.plan.End(), runErr == nil
}

// report prints the ranking to stdout and where the records are to stderr. The error is the reason
// for an early end.
func (j *Run) report(kept *recording, drain context.Context, runErr error) error {
	goOn := "continue with: " + kept.goOn()
	if runErr = j.shortfall(runErr, goOn); drain.Err() != nil {
		runErr = nil
	}
	name := kept.file.Name()
	ranking, err := rank.Of(kept.memory, rank.Auto)
	if errors.Is(err, rank.ErrNoSamples) && drain.Err() != nil {
		fmt.Fprintf(j.Stderr, "nothing was measured yet; %s\n", goOn)
		return nil
	}
	if err != nil {
		return cmp.Or(runErr, fault.WithHint(fmt.Errorf("%s: %w", name, err), "allow more time, or look at the failures; "+goOn))
	}
	newest, _ := j.Store.Newest()
	commands := format.Commands(j.Store, name, name == newest, "modern", j.Options...)
	commands.Resume = kept.goOn()
	columns := min(terminal.Columns(j.Stdout), text.Columns)
	x := &format.Ranking{
		Ranking: ranking, Records: kept.memory, Output: format.Output{Columns: columns},
		Options: document.Options{Columns: columns, File: name, Shown: j.Store.Shown(name), Commands: commands},
	}
	if err := format.Print(j.Stdout, x, j.JSON); err != nil {
		return err
	}
	if j.JSON || !terminal.Is(j.Stdout) && !terminal.Same(j.Stdout, j.Stderr) { // a visible report contains that itself
		format.Saved(j.Stderr, j.Store.Shown(name))
	}
	return runErr
}

// shortfall explains why a run measured less than planned, if so, and how to resume.
func (j *Run) shortfall(runErr error, goOn string) error {
	if _, gaveUp := errors.AsType[*drive.HostError](runErr); gaveUp {
		err := j.bed.Explain(runErr)
		return fault.WithHint(err, fault.HintOf(err)+"; then "+goOn)
	}
	if runErr != nil {
		return runErr
	}
	if what, never := j.plan.NeverWorked(); never {
		return &fault.Error{What: fmt.Sprintf("not a single %s worked", what), Hint: "look at the failures; " + goOn}
	}
	if j.plan.End() == plan.EndFailures {
		return &fault.Error{What: "gave up: too many trials failed in a row", Hint: "look at the failures; " + goOn}
	}
	return nil
}
