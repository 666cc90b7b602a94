//go:build linux

package campaign

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/plan"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
)

// Suites are one for each cipher that is chosen, or what ssh takes by itself of what
// the server has offered.
func Suites(ctx context.Context, bed *testbed.Testbed, chosen testbed.Selection) ([]alg.Suite, error) {
	offer, err := bed.Shared()
	if err != nil {
		return nil, err
	}
	if offer, err = chosen.Apply(offer, bed.Client, bed.Offered); err != nil {
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
			return nil, &fault.Error{What: "the cipher that ssh takes by itself cannot be found out", Hint: "name one with --cipher"}
		}
		return []alg.Suite{alg.NewSuite(now.Cipher, cmp.Or(mac, now.MAC), kex)}, nil
	}
	var suites []alg.Suite
	for _, cipher := range offer.Ciphers {
		suites = append(suites, alg.NewSuite(cipher, mac, kex))
	}
	return suites, nil
}

// Methods measures transfer methods between the ends that e describes, records them,
// and reports what there is.
func Methods(drain context.Context, o Output, file *store.File, c record.Campaign, e *record.Environment, measure func(record.Sink) error) error {
	kept, err := keep(o, file, c, e)
	if err != nil {
		return err
	}
	before := len(kept.memory.Methods) + len(kept.memory.Runs)
	err = measure(kept.sink)
	_ = o.Screen.Draw()
	goOn := "go on with: " + o.GoOn + shell.Word(file.Name())
	why := plan.EndComplete
	if drain.Err() != nil {
		why, err = plan.EndInterrupted, nil
		defer fmt.Fprintln(o.Stderr, goOn)
	}
	if err = cmp.Or(err, kept.end(why)); err != nil {
		fmt.Fprintf(o.Stderr, "the records so far are in %s\n", file.Name())
		return fault.WithHint(err, cmp.Or(fault.HintOf(err), goOn))
	}
	if why == plan.EndComplete && before == len(kept.memory.Methods)+len(kept.memory.Runs) {
		fmt.Fprintln(o.Stderr, "nothing left to do: more --rounds go on")
	}
	results := compare.MethodResults(kept.memory)
	if len(results) == 0 && drain.Err() == nil {
		return &fault.Error{What: "nothing was measured", Hint: "allow more"}
	}
	if err := kept.show(&format.Methods{Records: kept.memory}); err != nil {
		return err
	}
	if drain.Err() == nil && !slices.ContainsFunc(results, func(r compare.MethodResult) bool { return r.Rate.N > 0 }) {
		return &fault.Error{What: "nothing could be measured", Hint: "see the report for the reasons"}
	}
	return nil
}
