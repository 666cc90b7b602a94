package plan_test

import (
	"math"
	"testing"
	"time"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/model"
	"sshpace/internal/plan"
	"sshpace/internal/stats"
)

func TestDiag(t *testing.T) {
	var zs, zm, zp []float64
	hits, total := 0, 0
	for seed := range uint64(40) {
		m := noisy(seed)
		p, err := plan.Sequential(budget(seed, 60*time.Second))
		f, _ := collect(t, m, p, err)
		var tr []model.Transfer
		for _, s := range f.Samples {
			if x, ok := model.TransferOf(f.Trials[s.Trial], s, 0); ok {
				tr = append(tr, x)
			}
		}
		var cells []alg.Suite
		cells = alg.Fold(f.Campaign.Offer).Bulk
		a := model.Analyse(bench.Upload, cells, tr, 2)
		var all []float64
		n := map[int]int{}
		for i, fig := range a.Client.Figures {
			truth := math.Log(m.Client(a.Cells[i]))
			all = append(all, fig.Log-truth)
			n[fig.N]++
			zs = append(zs, (fig.Log-truth)/math.Hypot(fig.Err, a.Client.Level))
			if i := a.Client.Interval(i); i.Lo <= math.Exp(truth) && math.Exp(truth) <= i.Hi {
				hits++
			}
			total++
			if fig.N > 0 {
				zm = append(zm, (fig.Measured-truth)/(a.Client.Deviation/math.Sqrt(float64(fig.N))))
			}
			if fig.Foretold {
				zp = append(zp, (fig.Predicted-truth)/fig.Error)
			}
		}
		if seed < 8 {
			t.Logf("sigma %.4f tau %.4f df %.0f bias %.4f n %v drift %.3f", a.Client.Deviation, a.Client.Interaction, a.Client.Degrees, stats.Mean(all), n, a.Client.Drift)
		}
	}
	t.Logf("coverage %.3f rms z: combined %.2f measured %.2f predicted %.2f", float64(hits)/float64(total), stats.RMS(zs), stats.RMS(zm), stats.RMS(zp))
}
