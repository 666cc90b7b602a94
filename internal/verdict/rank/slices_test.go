package rank_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/measure/model/sim"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// sat is a run of slices on a simulated machine with neighbours.
func sat(t testing.TB, m *sim.Machine, length time.Duration) *record.File {
	t.Helper()
	space := alg.Fold(sim.Offer())
	c := record.Campaign{Target: "loopback", Engine: "openssh", Server: "openssh", Offer: sim.Offer(), Directions: []record.Direction{record.Upload}}
	return m.Sit(c, sim.Sitting{
		Cells: space.Bulk, Length: length, Slice: 2 * time.Millisecond, Long: 6, Controls: 10, Holdouts: 12, Probe: 10, ExcessNS: 70e3,
	})
}

func neighbours(seed uint64) *sim.Machine {
	return &sim.Machine{
		Seed: seed, Noise: 0.05, WallNoise: 0.05, Connection: 0.003, Interaction: 0.005,
		Neighbours: sim.Neighbours{Share: 0.3, Slow: 0.35, Drift: 0.6},
	}
}

func TestTrial(t *testing.T) {
	var cov, med, p95 []float64
	var runs []*rank.Ranking
	for seed := range uint64(6) {
		m := neighbours(seed + 1)
		f := sat(t, m, 60*time.Second)
		start := time.Now()
		r, err := rank.Of(f, rank.Options{By: rank.Cost})
		if err != nil {
			t.Fatal(err)
		}
		var errs []float64
		for _, c := range r.Bulk {
			errs = append(errs, c.Within.Client.Log-math.Log(m.Client(c.Suite)))
		}
		centre := stats.Median(errs)
		for i := range errs {
			errs[i] = math.Abs(errs[i] - centre)
		}
		fmt.Printf("%v slowed %.1f%% hold %.2f/%.2f noise %.2f/%.2f true error med %.2f p95 %.2f level %+.1f%% slices %d tau %.2f%% kappa %.2f%%\n", time.Since(start).Round(time.Millisecond), r.Slowed.Percent(), r.Model.HoldoutError, r.Model.HoldoutP95, r.Noise.Cost, r.Noise.Throughput,
			100*stats.Median(errs), 100*stats.Quantile(errs, .95), 100*centre, len(f.Slices), 0.0, r.Model.Interaction)
		runs = append(runs, r)
	}
	for i := range runs {
		for k := range i {
			var d, arm []float64
			for _, c := range runs[i].Bulk {
				o, _ := runs[k].Find(c.Suite, c.Direction)
				d = append(d, c.Again.Client.Log-o.Again.Client.Log)
				arm = append(arm, c.Again.Client.Repeated().Arm())
			}
			s := stats.Median(d)
			in := 0.0
			for j := range d {
				d[j] = math.Abs(d[j] - s)
				if d[j] < arm[j] {
					in += 100 / float64(len(d))
				}
			}
			med, p95, cov = append(med, 100*stats.Median(d)), append(p95, 100*stats.Quantile(d, .95)), append(cov, in)
		}
	}
	fmt.Printf("pairs: med %.2f p95 %.2f covered %.1f (%.1f-%.1f)\n", stats.Median(med), stats.Median(p95), stats.Mean(cov), stats.Quantile(cov, 0), stats.Quantile(cov, 1))
}
