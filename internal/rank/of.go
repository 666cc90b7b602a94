package rank

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/model"
	"sshpace/internal/stats"
)

// Options of a ranking.
type Options struct {
	By By // default Auto
}

// ErrNoSamples says that a file holds nothing to rank.
var ErrNoSamples = errors.New("no usable sample in it: run it again, or resume it with --resume")

// Of ranks a file. The error is ErrNoSamples or says which records contradict
// each other.
func Of(f *bench.File, opts Options) (*Ranking, error) {
	space := alg.Fold(f.Campaign.Offer)
	r := &Ranking{
		Campaign: f.Campaign, Environment: f.Environment, Findings: f.Findings,
		Combinations: space.Combinations(),
	}
	d := collect(f, space)
	if len(d.transfers)+len(d.logins)+len(d.copies) == 0 {
		return nil, fmt.Errorf("%w%s", ErrNoSamples, d.firstFailure())
	}
	r.Failed, r.Harness, r.Ended = d.failures(), d.harness, d.ended
	r.rankBulk(d, opts)
	r.rankKex(d, space)
	return r, nil
}

// data is a file taken apart.
type data struct {
	transfers []model.Transfer
	logins    map[string][]bench.Phases // by canonical key exchange
	copies    []sampled
	bad       []sampled
	good      map[failKey]bool
	names     map[alg.Suite]alg.Suite // canonical cell to the name that was offered
	harness   Harness
	ended     string
}

type sampled struct {
	trial  bench.Trial
	sample bench.Sample
}

type failKey struct {
	workload bench.Workload
	suite    alg.Suite
}

func collect(f *bench.File, space alg.Space) *data {
	d := &data{logins: map[string][]bench.Phases{}, good: map[failKey]bool{}, names: map[alg.Suite]alg.Suite{}}
	for _, cell := range space.Bulk {
		d.names[model.CellOf(bench.Trial{Want: cell}).Suite] = cell
	}
	for _, finding := range f.Findings {
		if finding.What == model.Ended {
			d.ended = finding.Why
		}
	}
	spin := usualSpin(f.Samples)
	share := struct{ harness, ssh float64 }{}
	for _, s := range f.Samples {
		t, known := f.Trials[s.Trial]
		if !known || s.Outcome == bench.Aborted {
			continue
		}
		if !model.Usable(t, s) {
			d.bad = append(d.bad, sampled{t, s})
			continue
		}
		d.good[failKeyOf(t)] = true
		switch t.Workload {
		case bench.Login:
			kex := alg.Canonical(alg.Kex, t.Want.Kex)
			d.logins[kex] = append(d.logins[kex], *s.Phases)
		case bench.Copy:
			d.copies = append(d.copies, sampled{t, s})
		case bench.Transfer:
			if transfer, ok := model.TransferOf(t, s, spin); ok {
				d.transfers = append(d.transfers, transfer)
			}
			for _, segment := range s.Segments {
				dirt := model.Contamination(segment, spin)
				d.harness.Segments++
				d.harness.Quarantined += count(dirt.Wall)
				d.harness.QuarantinedCost += count(dirt.Cost)
				share.harness += float64(segment.HarnessCPUNS)
				share.ssh += cpu(segment.ClientCPUNS) + cpu(segment.ServerCPUNS)
			}
		}
	}
	if share.ssh > 0 {
		d.harness.CPUShare = 100 * share.harness / share.ssh
	}
	return d
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func failKeyOf(t bench.Trial) failKey {
	suite := t.Want.Bulk()
	if t.Workload == bench.Login {
		suite = alg.Suite{Kex: t.Want.Kex}
	}
	return failKey{t.Workload, suite}
}

// usualSpin is the median of the spin probes, 0 where there are none.
func usualSpin(samples []bench.Sample) float64 {
	var spins []float64
	for _, s := range samples {
		for _, segment := range s.Segments {
			if segment.SpinNS > 0 {
				spins = append(spins, float64(segment.SpinNS))
			}
		}
	}
	return stats.Median(spins)
}

func (d *data) firstFailure() string {
	if len(d.bad) == 0 {
		return ""
	}
	s := d.bad[0]
	return fmt.Sprintf(" (%d failed; the first, %s: %s %s)", len(d.bad), s.trial.Want, s.sample.Outcome, s.sample.Detail)
}

// failures lists what never worked, in the order of its first failure.
func (d *data) failures() []Failure {
	var out []Failure
	at := map[failKey]int{}
	for _, s := range d.bad {
		key := failKeyOf(s.trial)
		if d.good[key] {
			continue
		}
		i, seen := at[key]
		if !seen {
			i = len(out)
			at[key] = i
			out = append(out, Failure{Suite: key.suite, Workload: key.workload})
		}
		out[i].Attempts++
		out[i].Outcome, out[i].Detail = s.sample.Outcome, s.sample.Detail
	}
	return out
}

// rankBulk fills and orders the cells.
func (r *Ranking) rankBulk(d *data, opts Options) {
	cells := map[model.Cell][]model.Transfer{}
	for _, t := range d.transfers {
		cells[t.Cell] = append(cells[t.Cell], t)
	}
	throughput := pool(cells, func(t model.Transfer) float64 { return inverse(t.Wall) })
	client := pool(cells, func(t model.Transfer) float64 { return t.Client })
	server := pool(cells, func(t model.Transfer) float64 { return t.Server })
	for cell := range cells {
		suite, ok := d.names[cell.Suite]
		if !ok {
			suite = cell.Suite
		}
		r.Bulk = append(r.Bulk, Cell{
			Suite: suite, Direction: cell.Direction, Basis: Measured, Status: suite.Status(),
			Throughput: throughput[cell], Client: client[cell], Server: server[cell],
		})
	}
	r.By = opts.By
	if r.By == Auto || r.By == "" {
		r.By = Throughput
	}
	slices.SortFunc(r.Bulk, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(r.key(a), r.key(b)), cmp.Compare(a.Suite.String(), b.Suite.String()))
	})
	for i := range r.Bulk {
		r.Bulk[i].Rank = i + 1
		if i > 0 && r.Bulk[i-1].Direction == r.Bulk[i].Direction {
			r.Bulk[i].Rank = r.Bulk[i-1].Rank + 1
		}
	}
}

// key orders cells: smaller is better.
func (r *Ranking) key(c Cell) float64 {
	if r.By == Cost && c.Total() > 0 {
		return c.Total()
	}
	if c.Throughput == nil {
		return math.MaxFloat64
	}
	return -c.Throughput.Value
}

func inverse(nsPerByte float64) float64 {
	if nsPerByte <= 0 {
		return 0
	}
	return 1e9 / nsPerByte
}

// pool gives each cell the geometric mean of its connections, with a deviation
// pooled over all cells, because one cell alone has too few.
func pool[K comparable](cells map[K][]model.Transfer, value func(model.Transfer) float64) map[K]*Quantity {
	logs := map[K][]float64{}
	var groups [][]float64
	for cell, transfers := range cells {
		for _, t := range transfers {
			if v := value(t); v > 0 {
				logs[cell] = append(logs[cell], math.Log(v))
			}
		}
		groups = append(groups, logs[cell])
	}
	deviation, degrees := stats.PooledDeviation(groups)
	out := map[K]*Quantity{}
	for cell, xs := range logs {
		q := stats.PooledInterval(xs, deviation, degrees).Exp()
		out[cell] = &q
	}
	return out
}
