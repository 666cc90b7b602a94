package rank

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/model"
	"sshpace/internal/record"
)

// data is a file taken apart.
type data struct {
	sittings  model.Sittings
	paired    map[record.Direction]*model.Analysis // of a host, instead of sittings
	logins    []login
	copies    []sampled
	drift     []float64               // level of the machine at each copy, one after the other
	coarse    map[record.Cell]float64 // standard error that the clock of a log leaves in the logarithm of a cell's time
	overheads []sampled               // copies of one byte
	bad       []sampled
	good      map[failKey]bool
	names     map[alg.Suite]alg.Suite // canonical cell to the name that was offered
	cells     []alg.Suite             // canonical names of all cells
	cores     int
}

type sampled struct {
	trial  record.Trial
	sample record.Sample
}

// login is one login of a key exchange, by canonical name.
type login struct {
	trial record.Trial
	kex   string
	record.Phases
}

type failKey struct {
	workload record.Workload
	suite    alg.Suite
}

func collect(f *record.File, space alg.Space) *data {
	d := &data{good: map[failKey]bool{}, names: map[alg.Suite]alg.Suite{}, cores: f.Environment.Cores}
	for _, cell := range space.Bulk {
		id := cell.Computation()
		d.names[id] = cell
		d.cells = append(d.cells, id)
	}
	if f.Campaign.Server == record.ServerRemote {
		d.cores = 2 // two machines: each side has cores of its own
	}
	d.sit(f)
	for t, s := range f.Results() {
		switch {
		case s.Outcome == record.Aborted:
		case !model.Usable(t, s):
			d.bad = append(d.bad, sampled{t, s})
		default:
			d.add(t, s)
		}
	}
	return d
}

// sit takes the slices of connections that were open together.
func (d *data) sit(f *record.File) {
	if f.Campaign.Server == record.ServerRemote {
		d.compare(f)
		return
	}
	d.sittings = model.SittingsOf(f.Trials, f.Slices)
	for _, t := range d.sittings.Connections {
		d.good[failKeyOf(t.Trial)] = true
	}
}

// harnessShare is the CPU time of our own programs in slices, as percent of that of ssh and sshd.
func harnessShare(f *record.File) float64 {
	own, ssh := 0.0, 0.0
	for _, batch := range f.Slices {
		for _, s := range batch.Slices {
			if s.ClientCPUNS != nil && s.ServerCPUNS != nil && f.Campaign.Server != record.ServerRemote {
				own, ssh = own+float64(s.HarnessCPUNS), ssh+cpu(s.ClientCPUNS)+cpu(s.ServerCPUNS)
			}
		}
	}
	return 100 * own / math.Max(1, ssh)
}

// compare takes the slices of a host, which were paired.
func (d *data) compare(f *record.File) {
	d.paired = map[record.Direction]*model.Analysis{}
	for _, direction := range f.Campaign.Directions {
		if a := model.Paired(direction, d.cells, f.Trials, f.Slices); a.Transfers > 0 {
			d.paired[direction] = a
		}
	}
	for _, batch := range f.Slices {
		d.sittings.Slices += len(batch.Slices)
	}
}

// analysis of one direction; nil where nothing moved.
func (d *data) analysis(direction record.Direction) *model.Analysis {
	if d.paired != nil {
		return d.paired[direction]
	}
	if !slices.ContainsFunc(d.sittings.Connections, func(t model.Transfer) bool { return t.Cell.Direction == direction }) {
		return nil
	}
	a := model.Analyse(direction, d.cells, d.sittings, d.cores)
	d.addResolution(a)
	return a
}

func (d *data) add(t record.Trial, s record.Sample) {
	d.good[failKeyOf(t)] = true
	switch {
	case t.Workload == record.Copy && t.Role == record.RoleOverhead:
		d.overheads = append(d.overheads, sampled{t, s})
	case t.Workload == record.Copy:
		d.copies = append(d.copies, sampled{t, s})
	case s.Phases != nil:
		d.logins = append(d.logins, login{t, alg.Canonical(alg.Kex, t.Want.Kex), *s.Phases})
	}
}

func failKeyOf(t record.Trial) failKey {
	suite := t.Want.Bulk()
	if t.Workload == record.Login {
		suite = alg.Suite{Kex: t.Want.Kex}
	}
	return failKey{t.Workload, suite}
}

func (d *data) firstFailure() string {
	if len(d.bad) == 0 {
		return ""
	}
	s := d.bad[0]
	return fmt.Sprintf(" (%d trials failed; the first, %s: %s %s)", len(d.bad), s.trial.Want, s.sample.Outcome, s.sample.Detail)
}

// failures lists what never worked, in the order of its first failure, and counts the trials that gave nothing, by
// what happened.
func (d *data) failures() (never []Failure, counts map[record.Outcome]int) {
	at := map[failKey]int{}
	counts = map[record.Outcome]int{}
	for _, s := range d.bad {
		counts[s.sample.Outcome]++
		key := failKeyOf(s.trial)
		if d.good[key] {
			continue
		}
		i, seen := at[key]
		if !seen {
			i = len(never)
			at[key] = i
			never = append(never, Failure{Suite: key.suite, Workload: key.workload})
		}
		never[i].Attempts++
		never[i].Outcome, never[i].Detail = s.sample.Outcome, s.sample.Detail
		if s.sample.Outcome == record.OK { // recorded as a success, but without what it was for
			never[i].Outcome, never[i].Detail = record.Broken, "the record holds no bytes or no time"
		}
	}
	return never, counts
}

// takeCopies takes whole processes for transfers: with nothing better in the file, a ranking
// that includes the login is better than none.
func (d *data) takeCopies() {
	var trials []record.Trial
	var logs []float64
	samples := map[record.Cell][]record.Sample{}
	for _, c := range d.copies {
		cell := c.trial.Cell()
		samples[cell] = append(samples[cell], c.sample)
		trials, logs = append(trials, c.trial), append(logs, math.Log(float64(c.sample.ElapsedNS)/float64(c.sample.Bytes)))
	}
	d.sittings, d.drift = model.CopiesOf(trials, logs)
	d.coarse = map[record.Cell]float64{}
	for cell, of := range samples {
		d.coarse[cell] = clockError(of)
	}
}

// summarise gives the seconds of every combination of an exhaustive run, in
// the order of its names.
func (d *data) summarise() []Copy {
	samples := map[record.Cell][]record.Sample{}
	for _, c := range d.copies {
		k := record.Cell{Suite: c.trial.Asked(), Direction: c.trial.Direction}
		samples[k] = append(samples[k], c.sample)
	}
	keys := slices.SortedFunc(maps.Keys(samples), func(a, b record.Cell) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Suite.String(), b.Suite.String()))
	})
	groups := make([][]float64, len(keys))
	for i, k := range keys {
		for _, s := range samples[k] {
			groups[i] = append(groups[i], math.Log(s.ElapsedNS.Seconds()))
		}
	}
	var out []Copy
	for i, e := range alike(groups) {
		out = append(out, Copy{keys[i].Suite, keys[i].Direction, e.WithError(clockError(samples[keys[i]]), 0).Interval()})
	}
	return out
}
