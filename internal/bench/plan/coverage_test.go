package plan_test

import (
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/model"
	"sshpace/internal/record"
)

// Intervals of ratios to what is used now hold the truth about as often as they say, on machines
// with neighbors and connections that differ; and no candidate that is much slower than the best
// is ever clearly better than it.
func TestPairedCoverage(t *testing.T) {
	held, all, beaten := 0, 0, 0
	for seed := range uint64(150) {
		m := &benchtest.Machine{
			Seed: 100 + seed, Noise: 0.08, WallNoise: 0.05, Connection: 0.015,
			Neighbors: benchtest.Neighbors{Share: 0.3, Slow: 0.4, Uneven: 0.1},
		}
		c := host(seed, 20*time.Second)
		_, f, _ := run(t, m, c, near)
		var cells []alg.Suite
		for _, cell := range alg.Fold(c.Offer).Bulk {
			cells = append(cells, cell.Computation())
		}
		a := model.Paired(record.Upload, cells, f.Trials, f.Slices)
		var present, best int
		for i, cell := range a.Cells {
			if cell == chacha.Computation() {
				present = i
			}
			if a.Wall.Figures[i].Known() && m.Wall(cell) < m.Wall(a.Cells[best]) {
				best = i
			}
		}
		for i, cell := range a.Cells {
			if i == present || !a.Wall.Figures[i].Known() {
				continue
			}
			ratio := a.Wall.Figures[i].Estimate.Over(a.Wall.Figures[present].Estimate).Interval()
			all++
			if truth := m.Wall(cell) / m.Wall(chacha.Bulk()); ratio.Lo <= truth && truth <= ratio.Hi {
				held++
			}
			if m.Wall(cell) > 1.05*m.Wall(a.Cells[best]) && a.Wall.Figures[best].Estimate.Over(a.Wall.Figures[i].Estimate).Interval().Lo > 1 {
				beaten++
			}
		}
	}
	if share := float64(held) / float64(all); share < 0.92 || share > 0.985 {
		t.Errorf("%.1f %% of %d intervals hold the truth", 100*share, all)
	}
	if beaten > all/200 {
		t.Errorf("%d wrong orders", beaten)
	}
}
