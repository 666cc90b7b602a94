package rank

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/model"
	"sshpace/internal/record"
)

// data is the content of a file, sorted.
type data struct {
	sittings  model.Sittings
	analyses  []*model.Analysis // of the directions in which something moved
	logins    []record.Result
	copies    []record.Result
	drift     []float64       // level of the machine at each copy, one after the other
	overheads []record.Result // copies of one byte
	bad       []record.Result
	good      map[Failure]bool        // workloads that succeeded at least once, by the name of their failure
	names     map[alg.Suite]alg.Suite // canonical cell to the name that was offered
}

func collect(f *record.File, space alg.Space) *data {
	d := &data{good: map[Failure]bool{}, names: map[alg.Suite]alg.Suite{}}
	for _, cell := range space.Bulk {
		d.names[cell.Computation()] = cell
	}
	for t, s := range f.Results() {
		switch r := (record.Result{Trial: t, Sample: s}); {
		case s.Outcome == record.Aborted:
		case !r.Usable():
			d.bad = append(d.bad, r)
		default:
			d.add(r)
		}
	}
	d.analyze(f)
	return d
}

// analyze analyzes the slices: those of a host in pairs. With nothing better in the file, copies
// count as transfers: a ranking that includes the login is better than none.
func (d *data) analyze(f *record.File) {
	cells := slices.Collect(maps.Keys(d.names))
	var of func(record.Direction) *model.Analysis
	if f.Campaign.Server == record.ServerRemote {
		for _, batch := range f.Slices {
			d.sittings.Slices += len(batch.Slices)
		}
		of = func(direction record.Direction) *model.Analysis {
			return model.Paired(direction, cells, f.Trials, f.Slices)
		}
	} else {
		d.sittings = model.SittingsOf(f.Trials, f.Slices)
		for _, t := range d.sittings.Connections {
			d.good[failureOf(t.Trial)] = true
		}
		moved := d.sittings
		if len(moved.Connections) == 0 {
			moved, d.drift = model.CopiesOf(d.copies)
		}
		of = func(direction record.Direction) *model.Analysis {
			a := model.Analyze(direction, cells, moved, f.Environment.Cores)
			d.addResolution(a)
			return a
		}
	}
	for _, direction := range []record.Direction{record.Upload, record.Download, ""} {
		if a := of(direction); a.Wall.Known() {
			d.analyses = append(d.analyses, a)
		}
	}
}

// harnessShare returns the CPU time of our own programs in slices, as percent of that of ssh and
// sshd.
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

func (d *data) add(r record.Result) {
	d.good[failureOf(r.Trial)] = true
	switch {
	case r.Trial.Workload == record.Copy && r.Trial.Role == record.RoleOverhead:
		d.overheads = append(d.overheads, r)
	case r.Trial.Workload == record.Copy:
		d.copies = append(d.copies, r)
	case r.Sample.Phases != nil:
		d.logins = append(d.logins, r)
	}
}

// failureOf names the kind of trial that fails.
func failureOf(t record.Trial) Failure {
	suite := t.Want.Bulk()
	if t.Workload == record.Login {
		suite = alg.Suite{Kex: t.Want.Kex}
	}
	return Failure{Suite: suite, Workload: t.Workload}
}

func (d *data) firstFailure() string {
	if len(d.bad) == 0 {
		return ""
	}
	s := d.bad[0]
	return fmt.Sprintf(" (%d trials failed; the first, %s: %s %s)", len(d.bad), s.Trial.Want, s.Sample.Outcome, s.Sample.Detail)
}

// failures lists the kinds of trial that never worked, in the order of their first failure, and
// counts the trials without a result, by outcome.
func (d *data) failures() (never []Failure, counts map[record.Outcome]int) {
	at := map[Failure]int{}
	counts = map[record.Outcome]int{}
	for _, s := range d.bad {
		counts[s.Sample.Outcome]++
		key := failureOf(s.Trial)
		if d.good[key] {
			continue
		}
		i, seen := at[key]
		if !seen {
			i = len(never)
			at[key] = i
			never = append(never, key)
		}
		never[i].Attempts++
		never[i].Outcome, never[i].Detail = s.Sample.Outcome, s.Sample.Detail
		if s.Sample.Outcome == record.OK { // recorded as a success, but without its figure
			never[i].Outcome, never[i].Detail = record.Broken, "the record holds no bytes or no time"
		}
	}
	return never, counts
}
