package plan

import (
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Blocks plans randomised complete blocks (Fisher 1935; Abedi and Brecht, ICPE
// 2017): every block holds each cell once in a new random order, interleaved
// with logins, and the reference cell at its start, middle and end.
func Blocks(spec Spec) (*Plan, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	if spec.Rounds == 0 && spec.Budget == 0 {
		spec.Budget = defaultBudget
	}
	times := newTimes(spec)
	d := &blocks{spec: spec, times: times}
	return newPlan(spec, d, spec.cells(), times), nil
}

// cells counts what a spec measures.
func (s Spec) cells() int {
	total := 0
	if !s.LoginOnly {
		total += len(s.Space.Bulk) * len(s.Directions)
	}
	if !s.BulkOnly {
		total += len(s.Space.Kex)
	}
	return total
}

type blocks struct {
	spec  Spec
	times *trialTimes
}

func (b *blocks) observe(record.Trial, record.Sample) {}

func (b *blocks) progress(p *Progress) {
	p.Phase = "complete blocks"
	if rest := b.spec.Rounds - p.Block; rest > 0 {
		p.Remaining = b.times.repeated(p.Remaining, rest, b.trials(p.Block+1))
	}
}

func (b *blocks) block(n int, _ time.Duration) ([]record.Trial, Ending) {
	if b.spec.Rounds > 0 && n > b.spec.Rounds {
		return nil, EndComplete
	}
	return b.trials(n), ""
}

func (b *blocks) trials(n int) []record.Trial {
	var trials, references []record.Trial
	if !b.spec.LoginOnly {
		for _, d := range b.spec.Directions {
			for _, cell := range b.spec.Space.Bulk {
				trials = append(trials, b.spec.transfer(cell, d))
			}
			trial := b.spec.transfer(b.spec.reference(), d)
			trial.Role = record.RoleReference
			references = append(references, trial)
		}
	}
	if !b.spec.BulkOnly {
		for range b.logins() {
			for _, kex := range b.spec.Space.Kex {
				trials = append(trials, b.spec.login(kex))
			}
		}
	}
	b.spec.random(n).Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	return sandwich(trials, references)
}

// logins of each key exchange in a block, so that all blocks together have
// enough of them.
func (b *blocks) logins() int {
	rounds := max(1, b.spec.Rounds)
	return (b.spec.Logins + rounds - 1) / rounds
}

// sandwich puts the references at the start, in the middle and at the end.
func sandwich(trials, references []record.Trial) []record.Trial {
	middle := len(trials) / 2
	out := append([]record.Trial{}, references...)
	out = append(out, trials[:middle]...)
	out = append(out, references...)
	out = append(out, trials[middle:]...)
	return append(out, references...)
}

// Exhaustive plans every combination of the offer literally, aliases and
// ignored MACs included, as copies of SizeBytes, Runs times, each run in a new
// random order: the slow way, to check the fast one against.
func Exhaustive(spec Spec) (*Plan, error) {
	if spec.SizeBytes <= 0 {
		spec.SizeBytes = unit.Bytes(64 << 20)
	}
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	d := &exhaustive{spec: spec, all: combinations(spec), times: newTimes(spec)}
	return newPlan(spec, d, len(d.all), d.times), nil
}

// combinations lists the naive matrix, once per direction.
func combinations(spec Spec) []record.Trial {
	var all []record.Trial
	offer := spec.Space.Offer
	macs := offer.MACs
	if len(macs) == 0 {
		macs = []string{""}
	}
	for _, d := range spec.Directions {
		for _, cipher := range offer.Ciphers {
			for _, mac := range macs {
				for _, kex := range offer.Kex {
					all = append(all, copyTrial(spec, alg.Suite{Cipher: cipher, MAC: mac, Kex: kex}, d))
				}
			}
		}
	}
	return all
}

func copyTrial(spec Spec, asked alg.Suite, d record.Direction) record.Trial {
	t := record.Trial{
		Want:     alg.NewSuite(asked.Cipher, asked.MAC, asked.Kex),
		Workload: record.Copy, Direction: d, SizeBytes: spec.SizeBytes,
	}
	if t.Want != asked {
		t.Offered = asked
	}
	return t
}

type exhaustive struct {
	spec  Spec
	all   []record.Trial
	times *trialTimes
}

func (e *exhaustive) observe(record.Trial, record.Sample) {}

func (e *exhaustive) progress(p *Progress) {
	p.Phase = "every combination"
	p.Remaining = e.times.repeated(p.Remaining, max(0, e.spec.Runs-p.Block), e.all)
}

func (e *exhaustive) block(n int, _ time.Duration) ([]record.Trial, Ending) {
	if n > e.spec.Runs {
		return nil, EndComplete
	}
	trials := append([]record.Trial{}, e.all...)
	e.spec.random(n).Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	return trials, ""
}

// Estimate is the measuring time that the whole plan takes: its budget where
// it has one, else what the expected times of its trials add up to.
func (p *Plan) Estimate() time.Duration {
	var all time.Duration
	switch d := p.design.(type) {
	case *blocks:
		all = d.times.repeated(0, d.spec.Rounds, d.trials(1))
	case *exhaustive:
		all = d.times.repeated(0, d.spec.Runs, d.all)
	case *sequential:
		all = d.spec.Budget
	}
	if p.spec.Budget > 0 && (all == 0 || all > p.spec.Budget) {
		return p.spec.Budget
	}
	return all
}
