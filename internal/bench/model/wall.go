package model

import (
	"math"
	"math/rand/v2"

	"sshpace/internal/base/alg"
)

// ratios are how much longer than the CPU time of the side that decides long transfers take.
// AEAD ciphers, the fastest, lose most by both sides waking each other up, each in its own
// way; all others have one ratio.
type ratios struct {
	cells []alg.Suite
	obs   []observation
	of    map[string][]int // observations of each kind
}

// usualRatio is what cells of one kind are taken to differ by.
const usualRatio = 0.01

// kindOf names the cells that have one ratio.
func kindOf(cell alg.Suite) string {
	if cell.MAC == "" {
		return cell.Cipher
	}
	return ""
}

func newRatios(cells []alg.Suite, obs []observation) *ratios {
	r := &ratios{cells: cells, obs: obs, of: map[string][]int{}}
	for i, o := range obs {
		kind := kindOf(cells[o.cell])
		r.of[kind] = append(r.of[kind], i)
	}
	return r
}

// within is the variance of one slice's ratio, as connections of one kind show it.
func (r *ratios) within() float64 {
	squares, degrees := 0.0, 0.0
	for _, kind := range sortedKeys(r.of) {
		mean, _ := r.mean(r.of[kind])
		for _, i := range r.of[kind] {
			off := math.Exp(r.obs[i].log) - mean
			squares += float64(r.obs[i].n) * off * off
		}
		degrees += float64(len(r.of[kind]) - 1)
	}
	return squares / math.Max(degrees, 1)
}

// mean is the ratio that observations show, and of how many slices.
func (r *ratios) mean(of []int) (mean, n float64) {
	sum := 0.0
	for _, i := range of {
		sum, n = sum+float64(r.obs[i].n)*math.Exp(r.obs[i].log), n+float64(r.obs[i].n)
	}
	return sum / n, n
}

// logs are the ratios of all cells: those of a kind that was not timed have that of the cells
// with a MAC, or of all, or 1 where nothing was.
func (r *ratios) logs(of map[string][]int) []float64 {
	means, all := map[string]float64{}, []int{}
	for _, kind := range sortedKeys(of) {
		means[kind], _ = r.mean(of[kind])
		all = append(all, of[kind]...)
	}
	if len(of[""]) == 0 {
		means[""] = 1
		if len(all) > 0 {
			means[""], _ = r.mean(all)
		}
	}
	out := make([]float64, len(r.cells))
	for i, cell := range r.cells {
		mean, known := means[kindOf(cell)]
		if !known {
			mean = means[""]
		}
		out[i] = math.Log(mean)
	}
	return out
}

// resample draws other connections of each kind.
func (r *ratios) resample(random *rand.Rand) map[string][]int {
	out := map[string][]int{}
	for _, kind := range sortedKeys(r.of) {
		of := r.of[kind]
		for range of {
			out[kind] = append(out[kind], of[random.IntN(len(of))])
		}
	}
	return out
}

// fromCosts are wall times: the CPU time that decides, times the ratio of the kind.
func fromCosts(cells []alg.Suite, obs []observation, cost Series, between float64) Series {
	s := Series{between: between, Figures: make([]Figure, len(cells)), Degrees: cost.Degrees}
	r := newRatios(cells, obs)
	usual, within, own := r.logs(r.of), r.within(), make([][]int, len(cells))
	for i, o := range obs {
		own[o.cell] = append(own[o.cell], i)
	}
	for i := range s.Figures {
		f, c := &s.Figures[i], cost.Figures[i]
		f.N = len(own[i])
		if !c.Known() {
			continue
		}
		f.Log, f.Basis, f.Shared, f.Foretold = c.Log+usual[i], f.N, c.Shared, true
		f.Predicted, f.Error = f.Log, math.Hypot(c.Err, usualRatio)
		if f.N > 0 {
			mean, n := r.mean(own[i])
			f.Measured, f.Own = c.Log+math.Log(mean), math.Hypot(c.Err, math.Sqrt(within/n)/math.Exp(usual[i]))
		}
	}
	draw := 0
	s.draw(func(random *rand.Rand) []float64 {
		logs := r.logs(r.resample(random))
		for i := range logs {
			logs[i] += cost.draws[draw][i]
		}
		draw++
		return logs
	})
	return s
}
