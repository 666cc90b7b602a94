package model

import (
	"math"
	"math/rand/v2"

	"sshpace/internal/base/alg"
)

// ratios are how much longer than the CPU time of the side that decides long transfers take.
// AEAD ciphers, the fastest, lose most by both sides waking each other up, each in its own
// way. All others are a one-way layout of random effects (Searle, Casella and McCulloch,
// Variance Components, ch. 3), in which the mean of a cipher counts as far as it is known.
type ratios struct {
	cells           []alg.Suite
	obs             []observation
	of              map[string][]int // observations of each cipher
	aead            map[string]bool
	within, between float64 // variance of one slice's ratio, and that of ciphers
}

// What ciphers are expected to differ by, and how many of them that is worth.
const (
	usualRatio = 0.01
	ratioWorth = 4
)

func newRatios(cells []alg.Suite, obs []observation) *ratios {
	r := &ratios{cells: cells, obs: obs, of: map[string][]int{}, aead: map[string]bool{}}
	for i, o := range obs {
		cell := cells[o.cell]
		r.of[cell.Cipher], r.aead[cell.Cipher] = append(r.of[cell.Cipher], i), cell.MAC == ""
	}
	means, all := r.means(r.of)
	squares, degrees, between, total, sizes, ciphers := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
	for _, cipher := range sortedKeys(r.of) {
		if r.aead[cipher] {
			continue
		}
		of, n := r.of[cipher], r.slices(r.of[cipher])
		for _, i := range of {
			off := math.Exp(obs[i].log) - means[cipher]
			squares += float64(obs[i].n) * off * off
		}
		degrees += float64(len(of) - 1)
		between += n * (means[cipher] - all) * (means[cipher] - all)
		total, sizes, ciphers = total+n, sizes+n*n, ciphers+1
	}
	if degrees > 0 && total > 0 {
		r.within = squares / degrees
		moments := (between - (ciphers-1)*r.within) / math.Max(total-sizes/total, 1)
		r.between = math.Max(0, (ratioWorth*usualRatio*usualRatio+(ciphers-1)*moments)/(ratioWorth+ciphers-1))
	}
	return r
}

// slices are how many observations rest on.
func (r *ratios) slices(of []int) (n float64) {
	for _, i := range of {
		n += float64(r.obs[i].n)
	}
	return n
}

// means are those of ciphers, and of all but AEAD ciphers, if there are others; 1 without any.
func (r *ratios) means(of map[string][]int) (means map[string]float64, all float64) {
	means = map[string]float64{}
	var sums, weights [2]float64
	for _, cipher := range sortedKeys(of) {
		sum, n := 0.0, r.slices(of[cipher])
		for _, i := range of[cipher] {
			sum += float64(r.obs[i].n) * math.Exp(r.obs[i].log)
		}
		means[cipher] = sum / n
		k := one(r.aead[cipher])
		sums[k], weights[k] = sums[k]+sum, weights[k]+n
	}
	k := one(weights[0] == 0)
	if weights[k] == 0 {
		return means, 1
	}
	return means, sums[k] / weights[k]
}

// logs are the ratios of all cells.
func (r *ratios) logs(of map[string][]int) []float64 {
	means, all := r.means(of)
	out := make([]float64, len(r.cells))
	for i, cell := range r.cells {
		ratio := all
		if mean, known := means[cell.Cipher]; known && cell.MAC == "" {
			ratio = mean
		} else if known && r.between > 0 {
			ratio += r.between / (r.between + r.within/r.slices(of[cell.Cipher])) * (mean - all)
		}
		out[i] = math.Log(ratio)
	}
	return out
}

// resample draws other connections of each cipher.
func (r *ratios) resample(random *rand.Rand) map[string][]int {
	out := map[string][]int{}
	for _, cipher := range sortedKeys(r.of) {
		of := r.of[cipher]
		for range of {
			out[cipher] = append(out[cipher], of[random.IntN(len(of))])
		}
	}
	return out
}

// fromCosts are wall times: the CPU time that decides, times the ratio of the cipher.
func fromCosts(cells []alg.Suite, obs []observation, cost Series, between float64) Series {
	s := Series{between: between, Figures: make([]Figure, len(cells)), Degrees: cost.Degrees}
	r := newRatios(cells, obs)
	usual, n, own := r.logs(r.of), make([]float64, len(cells)), make([]float64, len(cells))
	for _, o := range obs {
		s.Figures[o.cell].N++
		n[o.cell] += float64(o.n)
		own[o.cell] += float64(o.n) * math.Exp(o.log)
	}
	for i := range s.Figures {
		f, c := &s.Figures[i], cost.Figures[i]
		if !c.Known() {
			continue
		}
		f.Log, f.Basis, f.Shared, f.Foretold = c.Log+usual[i], f.N, c.Shared, true
		f.Predicted, f.Error = f.Log, math.Hypot(c.Err, math.Sqrt(r.between)/math.Exp(usual[i]))
		if n[i] > 0 {
			f.Measured, f.Own = c.Log+math.Log(own[i]/n[i]), math.Hypot(c.Err, math.Sqrt(r.within/n[i])/math.Exp(usual[i]))
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
