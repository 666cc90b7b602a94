package rank

import (
	"errors"
	"fmt"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// ErrNoSamples says that a file holds nothing to rank.
var ErrNoSamples = errors.New("there is no usable sample")

// ErrTooMany says that a file names more algorithms than any program has: somebody wrote it by
// hand.
var ErrTooMany = errors.New("more ciphers and MACs than any SSH program has")

// mostCells is the most combinations of cipher and MAC; OpenSSH has 115.
const mostCells = 4096

// Of ranks a file by a quantity. Its errors are ErrNoSamples, with the first failure, and
// ErrTooMany.
func Of(f *record.File, by By) (*Ranking, error) {
	if offer := f.Campaign.Offer; len(offer.Ciphers)*max(1, len(offer.MACs)) > mostCells {
		return nil, fmt.Errorf("%w: %d and %d", ErrTooMany, len(offer.Ciphers), len(offer.MACs))
	}
	space := alg.Fold(f.Campaign.Offer)
	r := &Ranking{
		Campaign: f.Campaign, Environment: f.Environment, Findings: f.Findings,
		Combinations: space.Combinations(), Truncated: f.Truncated, Measurements: f.Measurements, Limits: newest(f.Limits),
		Heat: heatOf(f.Thermals),
	}
	d := collect(f, space)
	if len(d.sittings.Connections)+len(d.analyses)+len(d.logins)+len(d.copies) == 0 {
		if len(f.Measurements) > 0 && len(f.Samples) == 0 {
			return r, nil // a machine's limits, or an imported log without SSH
		}
		return nil, fmt.Errorf("%w%s", ErrNoSamples, d.firstFailure())
	}
	r.Failed, r.Refusals = d.failures()
	r.Harness.CPUShare, r.Ended, r.Trials = harnessShare(f), f.End.Why, len(d.bad)+len(d.sittings.Connections)+len(d.logins)+len(d.copies)+len(d.overheads)
	r.Slowed, r.Slices, r.Beside = d.sittings.Slowed, d.sittings.Slices, d.beside()
	r.rankBulk(d, by)
	r.rankKex(d, space, by)
	r.Copies = d.summarize()
	r.OverheadNS = r.overhead(d)
	r.Warnings = doubts(r, d)
	return r, nil
}

// newest returns the limits that were found last, one for each direction: a resumed run has looked
// again.
func newest(limits []record.Limit) []record.Limit {
	var last []record.Limit
	for _, limit := range limits {
		last = slices.DeleteFunc(last, func(l record.Limit) bool { return l.Mode == limit.Mode && l.Direction == limit.Direction })
		last = append(last, limit)
	}
	return last
}
