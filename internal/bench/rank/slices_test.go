package rank_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/rank"
)

// repeated ranks runs of one machine with neighbors, by cost.
func repeated(t *testing.T, runs int) []*rank.Ranking {
	t.Helper()
	var out []*rank.Ranking
	seed := seedtest.Of(t)
	for i := range uint64(runs) {
		r, err := rank.Of(benchtest.Sit(t, benchtest.Crowded(seed+i), time.Minute), rank.Cost)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// A minute of slices finds every cell's cost to half a percent beside the others, all of them with
// what neighbors usually add, and its predictions hold.
func TestSlicesFindTheCosts(t *testing.T) {
	seed := seedtest.Of(t)
	m := benchtest.Crowded(seed)
	for i, r := range repeated(t, 2) {
		var errs []float64
		for _, c := range r.Bulk {
			errs = append(errs, c.Client.Log-math.Log(m.Client(c.Suite)))
		}
		level := stats.Median(errs)
		for k := range errs {
			errs[k] = math.Abs(errs[k] - level)
		}
		if len(r.Bulk) != 115 || stats.Median(errs) > 0.005 || stats.Quantile(errs, 0.95) > 0.02 || level < -0.01 || level > 0.06 {
			t.Errorf("run %d: %d cells are off by %.2f %% (median), %.2f %% (95 %%), all together by %.2f %%",
				i, len(r.Bulk), 100*stats.Median(errs), 100*stats.Quantile(errs, 0.95), 100*level)
		}
		if r.Model.HoldoutCells < 9 || r.Model.HoldoutError > 3 || r.Model.HoldoutP95 > 5 || r.Noise.Cost > 2.2 {
			t.Errorf("run %d: %d held out, off by %.2f / %.2f %%, noise floor %.2f %%", i, r.Model.HoldoutCells, r.Model.HoldoutError, r.Model.HoldoutP95, r.Noise.Cost)
		}
		if r.Slowed.Percent() < 5 || r.Slowed.Percent() > 20 {
			t.Errorf("run %d: slowed by %.1f %%, want about 10", i, r.Slowed.Percent())
		}
	}
}

// Two runs agree: in the order of cells, in what they tell apart, and within the errors that they
// claim.
func TestRunsOfSlicesAgree(t *testing.T) {
	runs := repeated(t, 4)
	held, cells := 0.0, 0.0
	for i, a := range runs {
		for _, b := range runs[:i] {
			var xs, ys, difference, arm []float64
			of := map[alg.Suite]rank.Cell{}
			for _, c := range b.Bulk {
				of[c.Suite] = c
			}
			for _, c := range a.Bulk {
				other := of[c.Suite]
				xs, ys = append(xs, c.Client.Log), append(ys, other.Client.Log)
				difference = append(difference, c.Client.Log-other.Client.Log)
				arm = append(arm, c.Client.Repeated().Arm())
				for _, d := range a.Bulk {
					o := of[d.Suite]
					if c.Group < d.Group && len(c.Group) == len(d.Group) && other.Group > o.Group && len(other.Group) == len(o.Group) {
						t.Errorf("%s and %s: groups %s and %s, then %s and %s", c.Suite, d.Suite, c.Group, d.Group, other.Group, o.Group)
					}
				}
			}
			if tau := stats.KendallTau(xs, ys); tau < 0.97 {
				t.Errorf("Kendall tau %.3f", tau)
			}
			shift := stats.Median(difference)
			for k := range difference {
				if cells++; math.Abs(difference[k]-shift) <= arm[k] {
					held++
				}
			}
		}
	}
	if share := 100 * held / cells; share < 86 {
		t.Errorf("95 %% intervals hold the other run's value in %.1f %%", share)
	}
}

// A core that other programs keep busy counts against small differences, and is said; one batch
// that was disturbed does neither.
func TestForeignLoad(t *testing.T) {
	f := benchtest.Sit(t, benchtest.Crowded(seedtest.Of(t)), time.Minute)
	ranked := func(foreign func(batch int) time.Duration) *rank.Ranking {
		for i := range f.Slices {
			busy := foreign(i)
			f.Slices[i].SpanNS, f.Slices[i].ForeignCPUNS = time.Second, &busy
		}
		r, err := rank.Of(f, rank.Cost)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	warned := func(r *rank.Ranking) bool {
		return slices.ContainsFunc(r.Warnings, func(w rank.Warning) bool { return w.Name == "foreign" })
	}
	none := ranked(func(int) time.Duration { return 20 * time.Millisecond })
	once := ranked(func(batch int) time.Duration { return max(0, time.Duration(3-batch)*time.Second) })
	core := ranked(func(int) time.Duration { return time.Second })
	if warned(none) || warned(once) || math.Abs(once.Noise.Cost-none.Noise.Cost) > 0.1 {
		t.Errorf("noise floor without %.2f %%, disturbed once %.2f %%; warnings %v and %v", none.Noise.Cost, once.Noise.Cost, none.Warnings, once.Warnings)
	}
	if !warned(core) || core.Noise.Cost < none.Noise.Cost+4 {
		t.Errorf("noise floor without %.2f %%, beside a busy core %.2f %%; warnings %v", none.Noise.Cost, core.Noise.Cost, core.Warnings)
	}
}

// Where other guests slow UMAC more than HMAC, the mean of its slices is above the cost without
// them by more, which is said beside its figure; where they slow all alike, nothing is.
func TestGuestsSlowSomeMore(t *testing.T) {
	seed := seedtest.Of(t)
	ranked := func(uneven float64) *rank.Ranking {
		m := benchtest.Crowded(seed + 1)
		m.Neighbors.Uneven, m.Neighbors.Slow = uneven, 0.6
		r, err := rank.Of(benchtest.Sit(t, m, time.Minute), rank.Cost)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	said := func(r *rank.Ranking) bool {
		return slices.ContainsFunc(r.Warnings, func(w rank.Warning) bool { return w.Name == "beside" && strings.Contains(w.Text, "umac-128 took ") })
	}
	all, some := ranked(0), ranked(0.8)
	if len(all.Beside) > 0 || said(all) {
		t.Errorf("all alike: %+v", all.Beside)
	}
	more := func(what string) float64 {
		i := slices.IndexFunc(some.Beside, func(b rank.Beside) bool { return b.What == what })
		if i < 0 {
			return 0
		}
		return some.Beside[i].More
	}
	if umac, rest := more("umac-128"), more("all else"); umac < rest+5 || umac > 30 || more("hmac-sha2-256") > 0 || !said(some) {
		t.Errorf("UMAC more: %+v, %+v", some.Beside, some.Warnings)
	}
}
