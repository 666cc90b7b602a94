//go:build linux

package campaign

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
)

// Suites returns a suite for each chosen cipher. Without a choice it returns the one suite that ssh
// negotiates by default with the server.
func Suites(ctx context.Context, bed *testbed.Testbed, chosen testbed.Selection) ([]alg.Suite, error) {
	offer, _, err := bed.Chosen(chosen)
	if err != nil {
		return nil, err
	}
	kex := ""
	if len(chosen.Patterns[alg.Kex]) > 0 {
		kex = offer.Kex[0]
	}
	mac := ""
	if len(offer.MACs) > 0 {
		mac = offer.MACs[0]
	}
	if len(chosen.Patterns[alg.Cipher]) == 0 && chosen.Policy == "" {
		now := bed.Present(ctx)
		if now.Cipher == "" {
			return nil, &fault.Error{What: "cannot find out which cipher ssh uses by default", Hint: "name one with --cipher"}
		}
		return []alg.Suite{alg.NewSuite(now.Cipher, cmp.Or(mac, now.MAC), kex)}, nil
	}
	var suites []alg.Suite
	for _, cipher := range offer.Ciphers {
		suites = append(suites, alg.NewSuite(cipher, mac, kex))
	}
	return suites, nil
}

// MethodParams select the transfer methods, and the destination of the results.
type MethodParams struct {
	Campaign    record.Campaign // as far as the user set it
	Environment *record.Environment
	Turns       transfer.Turns
	Name        string // of a new result
	Output
}

// On sets the testbed on which they are measured.
func (p *MethodParams) On(bed *testbed.Testbed) {
	p.Name, p.Campaign.Target, p.Campaign.Engine, p.Campaign.Server, p.Environment = bed.Target, bed.Target, bed.Engine, bed.Kind, &bed.Environment
}

// Methods measures transfer methods, records them, and reports the results.
func Methods(drain context.Context, p MethodParams, measure func(transfer.Turns, record.Sink) error) error {
	if err := p.fits(&p.Campaign, p.Environment); err != nil {
		return err
	}
	if p.Turns.List {
		return listed(p.Output, p.Turns.Rounds, func(sink record.Sink) error { return measure(p.Turns, sink) })
	}
	p.Campaign.Seed, p.Campaign.Rounds, p.Campaign.BudgetNS = p.Turns.Seed, p.Turns.Rounds.Count, p.Turns.Rounds.Budget
	if p.Campaign.BudgetNS > 0 {
		p.Campaign.Rounds = 0
	}
	kept, err := p.begin(p.Name, p.Campaign, p.Environment)
	if err != nil {
		return err
	}
	defer kept.close()
	p.Turns.Old, p.Turns.Told = p.old(), p.told()
	if err := kept.carry(drain, "more --rounds", func() error { return measure(p.Turns, kept.sink) }); err != nil {
		return kept.broken(err)
	}
	results := compare.MethodResults(kept.memory)
	if len(results) == 0 && drain.Err() == nil {
		return &fault.Error{What: "nothing was measured", Hint: "allow more"}
	}
	if err := kept.show(format.Methods(kept.memory, false, document.Commands{Report: document.Standard.Report, Resume: kept.goOn()}, format.Output{})); err != nil {
		return err
	}
	if drain.Err() == nil && !slices.ContainsFunc(results, func(r compare.MethodResult) bool { return r.Rate.N > 0 }) {
		return &fault.Error{What: "nothing could be measured", Hint: "see the report for the reasons"}
	}
	return nil
}

// told returns a function that shows the next measurement; nil for nobody.
func (p *MethodParams) told() func(s record.Subject, round int) {
	if p.Quiet {
		return nil
	}
	var began time.Time
	tried, first := 0, 0
	return func(s record.Subject, round int) {
		usual := time.Duration(tried) * transfer.Takes(1, 1) / 3 // preparing takes as long as two rounds
		switch {
		case round == 0:
			tried++
		case first == 0:
			began, first = time.Now(), round
		case round > first:
			usual = time.Since(began) / time.Duration(round-first)
		}
		line := p.Turns.Rounds.Left(round, time.Duration(round-1)*usual, usual) + ": " + document.MethodLabel(*s.Method)
		if round == 0 {
			line = "trying " + document.MethodLabel(*s.Method)
		}
		if p.Screen.Width > 0 || round == 0 {
			p.Screen.Tell(line)
		}
	}
}
