package model

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func at(cipher, mac string, cost float64) point {
	return point{cell: alg.Suite{Cipher: cipher, MAC: mac}, log: math.Log(cost), variance: 1e-4}
}

// Costs that are sums are found exactly, also those that were not measured: c2 with m3 is 5 + 3
// from c1+m3 = 4, c1+m1 = 2, c2+m1 = 6.
func TestAdditiveIsExact(t *testing.T) {
	points := []point{at("c1", "m1", 2), at("c2", "m1", 6), at("c1", "m2", 3), at("c2", "m2", 7), at("c1", "m3", 4)}
	m := fitAdditive(points)
	log, err := m.others(alg.Suite{Cipher: "c2", MAC: "m3"}, nil)
	near(t, "c2 m3", math.Exp(log), 8, 1e-6)
	if math.IsInf(err, 1) {
		t.Error("a sum is not predicted")
	}
	for name, cell := range map[string]alg.Suite{"a MAC that was never measured": {Cipher: "c1", MAC: "m4"}, "an AEAD cipher": {Cipher: "c1"}} {
		if _, err := m.others(cell, nil); !math.IsInf(err, 1) {
			t.Errorf("%s is predicted", name)
		}
	}
	if _, err := m.others(points[4].cell, &points[4]); !math.IsInf(err, 1) {
		t.Error("the only cell of a MAC is predicted without it")
	}
}

func TestSeparatePiecesDoNotPredictEachOther(t *testing.T) {
	m := fitAdditive([]point{at("c1", "m1", 2), at("c2", "m2", 3)})
	if _, err := m.others(alg.Suite{Cipher: "c1", MAC: "m2"}, nil); !math.IsInf(err, 1) {
		t.Error("two cells without a common name predict a third")
	}
}

// What others say of a cell must be what a fit without it predicts.
func TestOthersIsLeaveOneOut(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	var points []point
	for _, c := range []string{"c1", "c2", "c3"} {
		for i, m := range []string{"m1", "m2", "m3", "m4"} {
			points = append(points, at(c, m, (9+float64(i)+float64(len(points)))*math.Exp(0.005*random.NormFloat64())))
		}
	}
	m := fitAdditive(points)
	for i, p := range points {
		want, wantErr := fitAdditive(slices.Delete(slices.Clone(points), i, i+1)).others(p.cell, nil)
		got, err := m.others(p.cell, &p)
		if math.IsInf(err, 1) || math.Abs(got-want) > 1e-5 || math.Abs(err-wantErr) > 1e-5 {
			t.Errorf("%s: %v ± %v without itself, want %v ± %v", p.cell, got, err, want, wantErr)
		}
	}
}

// The work of a fit grows with the third power of the names in a file; beyond what any OpenSSH has,
// no cell predicts another.
func TestTooManyNamesAreNotFitted(t *testing.T) {
	points := func(n int) (out []point) {
		for i := range n {
			out = append(out, at(fmt.Sprint("c", i), "m1", 2), at(fmt.Sprint("c", i), "m2", 3))
		}
		return out
	}
	if m := fitAdditive(points(20)); len(m.columns) != 22 {
		t.Errorf("20 ciphers: %d columns", len(m.columns))
	}
	all := points(100000)
	m := fitAdditive(all)
	if _, err := m.others(all[0].cell, &all[0]); len(m.columns) != 0 || !math.IsInf(err, 1) {
		t.Errorf("%d columns, error %v", len(m.columns), err)
	}
}

// copies are observations without slices of a table of cells.
func copies(cells []alg.Suite, each int, cost func(alg.Suite) float64) (out []observation) {
	for range each {
		for i, cell := range cells {
			out = append(out, observation{cell: i, located: located{Estimate: stats.Estimate{Log: math.Log(cost(cell))}}})
		}
	}
	return out
}

// table is every cipher with every MAC.
func table(ciphers, macs []string) (out []alg.Suite) {
	for _, c := range ciphers {
		for _, m := range macs {
			out = append(out, alg.Suite{Cipher: c, MAC: m})
		}
	}
	return out
}

var fourCiphers = []string{"c1", "c2", "c3", "c4"}

// A truncated tag is the same computation: what noise put between hmac-sha1 and hmac-sha1-96 is no
// difference, and their mean is what both cost.
func TestEqualComputationsHaveOneEstimate(t *testing.T) {
	cost := map[string]float64{"hmac-md5": 1, "hmac-md5-96": 1.02, "hmac-sha1": 0.4, "hmac-sha1-etm@openssh.com": 0.42, "umac-64@openssh.com": 0.3}
	cells := table(fourCiphers, slices.Sorted(maps.Keys(cost)))
	s := fitSeries(cells, copies(cells, 1, func(cell alg.Suite) float64 {
		return 0.75 + float64(cell.Cipher[1]-'0')/4 + cost[cell.MAC]
	}), 0)
	md5, short, sha1 := s.Figures[0], s.Figures[1], s.Figures[2]
	if md5.Log != short.Log || md5.Shared != 2 || md5.N != 1 || md5.Basis != 2 {
		t.Errorf("hmac-md5 %v, hmac-md5-96 %v, shared by %d", md5.Log, short.Log, md5.Shared)
	}
	near(t, "both", md5.Value(), 2.01, 0.01)
	near(t, "hmac-sha1, another primitive", sha1.Value(), 1.41, 0.01)
}

// Connections differ by 2 %, and cells by 3 % from cipher + MAC; their slices by little.
func TestVarianceComponents(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	cells := table([]string{"c1", "c2", "c3", "c4", "c5", "c6"}, []string{"m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"})
	var obs []observation
	for i := range cells {
		own := 0.03 * random.NormFloat64()
		for range 3 {
			obs = append(obs, observation{cell: i, located: located{
				Estimate: stats.Estimate{Log: math.Log(2+float64(i/8)+float64(i%8)/2) + own + 0.02*random.NormFloat64(), N: 100},
				blocks:   []block{{0.01, 50}, {-0.01, 50}},
			}})
		}
	}
	e := newEstimator(cells, obs)
	near(t, "between connections", e.deviation, 0.02, 0.008)
	near(t, "of cells", e.interaction, 0.03, 0.018)
	s := fitSeries(cells, obs, 0)
	var errs []float64
	for _, f := range s.Figures {
		errs = append(errs, f.Err)
	}
	near(t, "error of a cell", stats.Median(errs), 0.02/math.Sqrt(3), 0.003)
}

// A machine that gets slower by a tenth in the middle of the run.
func TestDriftOfCopiesIsTakenOut(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	cells := table([]string{"a", "b", "c"}, []string{"x", "y"})
	cost := func(cell int) float64 { return 1 + float64(cell/2) + 0.5*float64(cell%2) }
	var all []record.Result
	var of []int
	for k := range 128 {
		cell := random.IntN(6)
		log := math.Log(cost(cell)) + 0.01*random.NormFloat64() + 0.1*float64(one(k >= 64))
		of = append(of, cell)
		all = append(all, record.Result{Trial: record.Trial{Want: cells[cell], Workload: record.Copy}, Sample: record.Sample{Bytes: 1e9, ElapsedNS: time.Duration(1e9 * math.Exp(log))}})
	}
	transfers, drift := CopiesOf(all)
	near(t, "second half against first", stats.Mean(drift[64:])-stats.Mean(drift[:64]), 0.1, 0.02)
	var halves [2][]float64
	for k, c := range transfers.Connections {
		halves[one(k >= 64)] = append(halves[one(k >= 64)], c.Wall().Log-math.Log(cost(of[k])))
	}
	near(t, "what is left of it", stats.Mean(halves[1])-stats.Mean(halves[0]), 0, 0.02)
}

// Long transfers of ciphers with a MAC take 1.05 times the CPU time of one side; an AEAD cipher has
// a ratio of its own.
func TestRatios(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	cells := append(table([]string{"c1", "c2", "c3", "c4", "c5"}, []string{"m1", "m2", "m3", "m4"}), alg.Suite{Cipher: "aead"})
	var cost Series
	for range cells {
		cost.Figures = append(cost.Figures, Effect{Estimate: stats.Estimate{Log: math.Log(2), Err: 0.01, N: 2}, Shared: 1})
	}
	for range replicates {
		cost.draws = append(cost.draws, slices.Repeat([]float64{math.Log(2)}, len(cells)))
	}
	var obs []observation
	for i, cell := range cells {
		ratio := map[string]float64{"aead": 1.3}[cell.Cipher]
		if ratio == 0 {
			ratio = 1.05
		}
		for range 4 {
			obs = append(obs, observation{cell: i, located: located{Estimate: stats.Estimate{Log: math.Log(ratio) + 0.02*random.NormFloat64(), N: 2}}})
		}
	}
	s := fromCosts(cells, obs, cost)
	for cell, want := range map[int]float64{0: 1.05, 7: 1.05, 17: 1.05, 20: 1.3} {
		near(t, cells[cell].String(), s.Figures[cell].Value()/2, want, 0.06)
	}
	if few := fromCosts(cells, obs[16:17], cost); math.Abs(few.Figures[0].Log-few.Figures[20].Log) > 1e-9 {
		t.Error("one connection does not stand for all")
	}
	if none := fromCosts(cells, nil, cost); !none.Figures[0].Known() || math.IsNaN(none.Figures[0].Log) || math.Abs(none.Figures[0].Value()-2) > 1e-9 {
		t.Errorf("without any: %+v", none.Figures[0].Estimate)
	}
}
