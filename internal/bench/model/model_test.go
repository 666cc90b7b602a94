package model

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func point(cipher, mac string, cost float64) Point {
	return Point{Cell: alg.Suite{Cipher: cipher, MAC: mac}, Log: math.Log(cost), Variance: 1e-4, n: 1}
}

// Costs that are sums are found exactly, also those that were not measured:
// c2 with m3 is 5 + 3 from c1+m3 = 4, c1+m1 = 2, c2+m1 = 6.
func TestAdditiveIsExact(t *testing.T) {
	m := FitAdditive([]Point{
		point("c1", "m1", 2), point("c2", "m1", 6), point("c1", "m2", 3), point("c2", "m2", 7), point("c1", "m3", 4), point("aead", "", 0.9),
	})
	log, _, ok := m.Predict(alg.Suite{Cipher: "c2", MAC: "m3"})
	near(t, "c2 m3", math.Exp(log), 8, 1e-6)
	if !ok || m.Parameters != 5 { // 2 + 3 - 1 and one AEAD cipher
		t.Errorf("known: %v, %d parameters, want 5", ok, m.Parameters)
	}
	if _, _, ok := m.Predict(alg.Suite{Cipher: "c1", MAC: "m4"}); ok {
		t.Error("a MAC that was never measured is predicted")
	}
	if _, _, ok := m.Without(point("aead", "", 0.9)); ok {
		t.Error("an AEAD cipher is predicted from others")
	}
	if _, _, ok := m.Without(point("c1", "m3", 4)); ok {
		t.Error("the only cell of a MAC is predicted without it")
	}
}

func TestSeparatePiecesDoNotPredictEachOther(t *testing.T) {
	m := FitAdditive([]Point{point("c1", "m1", 2), point("c2", "m2", 3)})
	if _, _, ok := m.Predict(alg.Suite{Cipher: "c1", MAC: "m2"}); ok {
		t.Error("two cells without a common name predict a third")
	}
	if m.Parameters != 2 {
		t.Errorf("%d parameters, want 2", m.Parameters)
	}
}

// Without must be what a fit without the cell predicts.
func TestWithoutIsLeaveOneOut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var points []Point
	for _, c := range []string{"c1", "c2", "c3"} {
		for i, m := range []string{"m1", "m2", "m3", "m4"} {
			points = append(points, point(c, m, (9+float64(i)+float64(len(points)))*math.Exp(0.005*random.NormFloat64())))
		}
	}
	all := FitAdditive(points)
	for i, p := range points {
		rest := append(append([]Point{}, points[:i]...), points[i+1:]...)
		want, _, _ := FitAdditive(rest).Predict(p.Cell)
		got, _, ok := all.Without(p)
		if !ok || math.Abs(got-want) > 0.002 {
			t.Errorf("%s: %v without itself, want %v", p.Cell, got, want)
		}
	}
}

// A truncated tag is the same computation: what noise put between hmac-sha1 and
// hmac-sha1-96 is no difference, and their mean is what both cost.
func TestEqualComputationsHaveOneEstimate(t *testing.T) {
	var cells []alg.Suite
	var obs []observation
	cost := map[string]float64{"hmac-md5": 1, "hmac-md5-96": 1.02, "hmac-sha1": 0.4, "hmac-sha1-96": 0.42, "umac-64@openssh.com": 0.3}
	for c, cipher := range []string{"c1", "c2", "c3", "c4"} {
		for _, mac := range slices.Sorted(maps.Keys(cost)) {
			obs = append(obs, observation{cell: len(cells), log: math.Log(1 + float64(c)/4 + cost[mac])})
			cells = append(cells, alg.Suite{Cipher: cipher, MAC: mac})
		}
	}
	s := fitSeries(cells, observations{list: obs, stretches: 1}, additive(cells), false)
	md5, short, sha1 := s.Figures[0], s.Figures[1], s.Figures[2]
	if md5.Log != short.Log || md5.Shared != 2 {
		t.Errorf("hmac-md5 %v, hmac-md5-96 %v, shared by %d", md5.Log, short.Log, md5.Shared)
	}
	near(t, "both", math.Exp(md5.Log), 2.01, 0.01)
	near(t, "hmac-sha1, another primitive", math.Exp(sha1.Log), 1.41, 0.01)
}

// A cell that two connections show to differ from its equals keeps its own figure.
func TestOddComputationIsItsOwn(t *testing.T) {
	cells := []alg.Suite{{Cipher: "c1", MAC: "hmac-sha1"}, {Cipher: "c1", MAC: "hmac-sha1-96"}, {Cipher: "c2", MAC: "hmac-sha1"}, {Cipher: "c2", MAC: "hmac-sha1-96"}}
	var obs []observation
	for range 6 {
		for i, cost := range []float64{1, 1.5, 2, 2} {
			obs = append(obs, observation{cell: i, log: math.Log(cost)})
		}
	}
	s := fitSeries(cells, observations{list: obs, stretches: 1}, additive(cells), false)
	near(t, "c1 hmac-sha1", math.Exp(s.Figures[0].Log), 1, 0.05)
	near(t, "c1 hmac-sha1-96", math.Exp(s.Figures[1].Log), 1.5, 0.1)
	if s.Figures[2].Log != s.Figures[3].Log {
		t.Errorf("the equals of c2 differ: %v and %v", s.Figures[2].Log, s.Figures[3].Log)
	}
}

// Applying every MAC to the ciphertext costs 0.1 more, which is one effect.
func TestEncryptThenMACIsOneEffect(t *testing.T) {
	var points []Point
	for c, cipher := range []string{"c1", "c2", "c3"} {
		for i, mac := range []string{"hmac-sha1", "hmac-md5", "hmac-sha2-256", "hmac-sha2-512"} {
			cost := 1 + float64(c)/4 + float64(i)/5
			points = append(points, point(cipher, mac, cost), point(cipher, mac+"-etm@openssh.com", cost+0.1))
		}
	}
	m := FitAdditive(points)
	for _, p := range points {
		log, _, _ := m.Predict(p.Cell)
		near(t, p.Cell.String(), log, p.Log, 0.002)
	}
	if m.Parameters > 8 { // 3 + 4 - 1, the effect, and a little for deviations; 3 + 8 - 1 names
		t.Errorf("%d parameters, want 7 or 8", m.Parameters)
	}
}

func TestWallModel(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for name, c := range map[string]struct {
		truth wallModel
		cores int
	}{
		"a core for each":   {wallModel{a: 1.1}, 2},
		"one core":          {wallModel{a: 1, b: 1}, 1},
		"one core untold":   {wallModel{a: 1, b: 1}, 0},
		"the link is slow":  {wallModel{c: 9}, 2},
		"partly overlapped": {wallModel{a: 1, b: 0.4}, 2},
	} {
		var cells []walled
		for range 60 {
			more := math.Exp(2 * random.Float64())
			w := work{more: more, less: more * (0.3 + 0.7*random.Float64())}
			cells = append(cells, walled{w, "aes128-ctr", c.truth.of(w) * math.Exp(0.01*random.NormFloat64()), 1e4})
		}
		m, _ := fitWall(cells, c.cores)
		var errs []float64
		for _, cell := range cells {
			errs = append(errs, math.Abs(m.of(cell.work)/c.truth.of(cell.work)-1))
		}
		if e := stats.Quantile(errs, 1); e > 0.03 {
			t.Errorf("%s: %+v fitted as %+v, off by %.1f %%", name, c.truth, m, 100*e)
		}
	}
}

// Beside a busy loop both sides of most ciphers share a core, but those of one do not: it has a
// level of its own, and the others follow from the costs of both sides together.
func TestCipherWithAWallTimeOfItsOwn(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	var cells []walled
	for _, cipher := range []string{"aes128-ctr", "aes256-ctr", "aes128-cbc", "3des-cbc"} {
		for range 5 {
			w := work{more: 1 + random.Float64(), less: 0.5 + 0.5*random.Float64()}
			wall := 1.05 * (w.more + w.less)
			if cipher == "3des-cbc" {
				w = work{more: 20 * w.more, less: 20 * w.more}
				wall = 1.4 * w.more
			}
			cells = append(cells, walled{w, cipher, wall * math.Exp(0.1*random.NormFloat64()), 100})
		}
	}
	m, apart := fitWall(cells, 1)
	near(t, "a", m.a, 1.05, 0.08)
	near(t, "b", m.b, 1.05, 0.08)
	if own := apart["3des-cbc"]; len(apart) != 1 || own.N != 5 || math.Abs(own.Log-math.Log(1.4/2.1)) > 0.1 {
		t.Errorf("levels of their own: %+v", apart)
	}
}

// Before anything was measured, and after one cell, the usual model stands.
func TestWallModelWithoutData(t *testing.T) {
	if m, _ := fitWall(nil, 2); m != (wallModel{a: 1}) {
		t.Errorf("two cores: %+v", m)
	}
	m, _ := fitWall([]walled{{work{more: 2, less: 1}, "aes128-ctr", 6, 1}}, 1)
	near(t, "one core, scaled to one cell", m.of(work{more: 4, less: 2}), 12, 1e-9)
}

// The posterior of noise and interaction finds both where the data tell them
// apart, and neither zero nor nonsense where they do not.
func TestVariances(t *testing.T) {
	for _, truth := range [][3]float64{{0.02, 0.014, 0}, {0.05, 0.01, 0}, {0.01, 0.03, 0}, {0.004, 0.01, 0.005}} {
		noise, own, slices := truth[0], truth[1], truth[2]
		v := variances{prior: priorCopy}
		if slices > 0 {
			v.prior = priorSlices
		}
		for range 80 {
			v.within = append(v.within, deviation{math.Hypot(noise, slices), slices * slices, 1})
			v.residuals = append(v.residuals, residual{squares: noise*noise + slices*slices + own*own, count: 1, share: 1, n: 1, within: slices * slices})
		}
		for range 20 {
			v.residuals = append(v.residuals, residual{squares: (noise*noise+slices*slices)/6 + own*own, count: 1, share: 1, n: 6, within: slices * slices})
		}
		deviation, interaction := v.estimate()
		near(t, "deviation", deviation/noise, 1, 0.2)
		near(t, "interaction", interaction/own, 1, 0.4)
	}
	for _, p := range []prior{priorCopy, priorSlices} {
		deviation, interaction := variances{prior: p}.estimate()
		if deviation < 0.5*p.deviation || deviation > 10*p.deviation || interaction < 0.002 || interaction > 0.1 {
			t.Errorf("without data: %v, %v", deviation, interaction)
		}
	}
}

// Four connections that are 2 % off, 1 % of it by their slices: (4·0.0001 + 4·0.0004 -
// 4·¾·0.0001) / (4 + 4·¾), of which the first is the usual deviation.
func TestModerated(t *testing.T) {
	four := slices.Repeat([]deviation{{off: 0.02, variance: 1e-4, share: 0.75}}, 4)
	near(t, "own deviation", moderated(0.01, four), math.Sqrt(17e-4/7), 1e-12)
	quiet := slices.Repeat([]deviation{{off: 0.001, variance: 1e-4, share: 0.75}}, 4)
	near(t, "less than slices say", moderated(0.01, quiet), math.Sqrt(4e-4/7), 1e-12)
}

// Connections of one AEAD cipher that are 5 % apart say nothing about those of others.
func TestFastestCiphersHaveTheirOwnDeviation(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	cells := []alg.Suite{{Cipher: "aead"}}
	var obs []observation
	connect := func(cell int, log, deviation float64) {
		obs = append(obs, observation{cell: cell, log: log + deviation*random.NormFloat64(), variance: 1e-6})
	}
	for range 6 {
		connect(0, 0, 0.05)
	}
	for c := range 4 {
		for m := range 5 {
			cells = append(cells, alg.Suite{Cipher: fmt.Sprint("c", c), MAC: fmt.Sprint("m", m)})
			for range 1 + one(m == 0) {
				connect(len(cells)-1, math.Log(2+float64(c)+float64(m)/2), 0.005)
			}
		}
	}
	s := fitSeries(cells, observations{list: obs, stretches: 1}, additive(cells), false)
	if s.own[0] < 0.02 || s.own[0] > 0.09 || s.own[1] != s.Deviation || s.Deviation > 0.012 {
		t.Errorf("connections of the AEAD differ by %.4f, others by %.4f (%.4f)", s.own[0], s.own[1], s.Deviation)
	}
	near(t, "error of the AEAD", s.Figures[0].Own, math.Hypot(s.own[0], 1e-3)/math.Sqrt(6), 1e-6)
}

// One of three processes is slow all its life. It says nothing of its cell, nor of how
// much processes differ; two that differ as much are both believed, and so is one alone.
func TestStrayConnection(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	var cells []alg.Suite
	var obs []observation
	for c := range 4 {
		for m := range 4 {
			cells = append(cells, alg.Suite{Cipher: fmt.Sprint("c", c), MAC: fmt.Sprint("m", m)})
			for range 3 {
				obs = append(obs, observation{cell: len(cells) - 1, variance: 1e-6, log: math.Log(2+float64(c)+float64(m)/2) + 0.004*random.NormFloat64()})
			}
		}
	}
	fit := func(obs []observation) Series {
		return fitSeries(cells, observations{list: obs, stretches: 1}, additive(cells), false)
	}
	usual := fit(obs)
	obs[4].log += 0.35
	s := fit(obs)
	if s.Strays != 1 || usual.Strays != 0 || s.Figures[1].N != 2 || math.Abs(s.Figures[1].Log-usual.Figures[1].Log) > 0.005 || s.Deviation > 1.2*usual.Deviation {
		t.Errorf("%d left out of %d connections, off by %.4f, deviation %.4f after %.4f", s.Strays, s.Figures[1].N, s.Figures[1].Log-usual.Figures[1].Log, s.Deviation, usual.Deviation)
	}
	two := slices.Delete(slices.Clone(obs), 5, 6)
	alone := slices.Delete(slices.Clone(two), 3, 4)
	for _, few := range []Series{fit(two), fit(alone)} {
		if few.Strays != 0 {
			t.Errorf("%d left out of a cell of %d connections", few.Strays, few.Figures[1].N)
		}
	}
}

// A machine that gets slower by a tenth in the middle of the run.
func TestDriftIsTakenOut(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 1))
	cells := []alg.Suite{{Cipher: "a", MAC: "x"}, {Cipher: "a", MAC: "y"}, {Cipher: "b", MAC: "x"}, {Cipher: "b", MAC: "y"}, {Cipher: "c", MAC: "x"}, {Cipher: "c", MAC: "y"}}
	var obs []observation
	for k := range 128 {
		o := observation{cell: random.IntN(6), stretch: k / stretch}
		o.log = math.Log(1+float64(o.cell/2)+0.5*float64(o.cell%2)) + 0.01*random.NormFloat64()
		if k >= 64 {
			o.log += 0.1
		}
		obs = append(obs, o)
	}
	s := fitSeries(cells, observations{list: obs, stretches: 8}, additive(cells), false)
	near(t, "second half against first", stats.Mean(s.Drift[4:])-stats.Mean(s.Drift[:4]), 0.1, 0.02)
}

// The work of a fit grows with the third power of the names in a file; beyond
// what any OpenSSH has, every cell stands for itself.
func TestTooManyNamesAreNotFitted(t *testing.T) {
	points := func(n int) (out []Point) {
		for i := range n {
			out = append(out, point(fmt.Sprint("c", i), "m1", 2), point(fmt.Sprint("c", i), "m2", 3))
		}
		return append(out, point("aead", "", 1))
	}
	if m := FitAdditive(points(20)); len(m.columns) != 22 {
		t.Errorf("20 ciphers: %d columns", len(m.columns))
	}
	all := points(100000)
	m := FitAdditive(all)
	if len(m.columns) != 0 || m.Parameters != len(all) {
		t.Errorf("%d columns, %d parameters", len(m.columns), m.Parameters)
	}
	for _, p := range all[:3] {
		log, err, ok := m.Predict(p.Cell)
		if log != p.Log || err != math.Sqrt(p.Variance) || !ok {
			t.Errorf("%v is %v ± %v, %v", p.Cell, log, err, ok)
		}
		if _, _, ok := m.Without(p); ok {
			t.Errorf("%v is predicted by others", p.Cell)
		}
	}
}

// A measurement ten standard errors off the prediction stands against it, unless luck has its part in it.
func TestContradiction(t *testing.T) {
	f := Figure{N: 1, Measured: 1, Own: 0.05, Foretold: true, Predicted: 1.5, Error: 0.02, within: 1e-3}
	f.combine()
	near(t, "measured", f.Log, 1, 0.03)
	f.chancy = true
	f.combine()
	near(t, "measured by chance", f.Log, 1.498, 0.002)
}
