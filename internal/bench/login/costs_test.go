package login

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// bench is a computer with cores that are slowed now and then: for tenths of a second, and for
// seconds.
type bench struct {
	random      *rand.Rand
	wild        float64 // part of logins that take three times as long
	now         float64
	quick, slow []float64
	seen        []float64 // when the core was looked at last
}

func newBench(seed uint64, cores int, wild float64) *bench {
	return &bench{random: rand.New(rand.NewPCG(seed, 4)), wild: wild, quick: make([]float64, cores), slow: make([]float64, cores), seen: make([]float64, cores)}
}

// slowed is the logarithm of how much slower a core is.
func (b *bench) slowed(core int) float64 {
	past := b.now - b.seen[core]
	b.seen[core] = b.now
	fade := func(x *float64, deviation, forgets float64) {
		left := math.Exp(-past / forgets)
		*x = left**x + math.Sqrt(1-left*left)*deviation*b.random.NormFloat64()
	}
	fade(&b.quick[core], 0.12, 0.15)
	fade(&b.slow[core], 0.07, 4)
	return b.quick[core] + b.slow[core]
}

// login of kind k, which costs its client 10+k ms and its server 20+k, and a tenth more beside
// others.
func (b *bench) login(k, core int) *record.Reading {
	weather := b.slowed(max(0, core))
	if core != alone {
		weather += 0.1
	}
	if b.random.Float64() < b.wild {
		weather += math.Log(3)
	}
	took := func(ms int) time.Duration {
		return time.Duration(float64(ms) * 1e6 * math.Exp(weather+0.05*b.random.NormFloat64()))
	}
	client, server := took(10+k), took(20+k)
	l := &record.Reading{Start: time.Unix(1e9, int64(b.now*1e9)), WallNS: 40 * time.Millisecond, ClientCPUNS: &client, ServerCPUNS: &server}
	if core != alone {
		l.Core = &core
	}
	return l
}

// rounds are logins of kinds in turns: a round alone, and two beside others.
func (b *bench) rounds(kinds, rounds int) (of []kindOf, logins []*record.Reading) {
	for range rounds {
		for round := range 3 {
			for i, k := range b.random.Perm(kinds) {
				core := alone
				if round > 0 {
					core = i % 2
				}
				of, logins = append(of, k), append(logins, b.login(k, core))
				b.now += 0.06 / float64(1+min(1, round))
			}
		}
	}
	return of, logins
}

// TestCosts: on a computer that is disturbed again and again, what is known of a kind's CPU time is
// narrower by a fifth with what other logins on the core tell; 95 % of the intervals hold what the
// kind costs in relation to all others, with wild logins and without, and what it costs beside
// others is covered.
func TestCosts(t *testing.T) {
	for _, wild := range []float64{0, 0.02} {
		testCosts(t, wild)
	}
}

func testCosts(t *testing.T, wild float64) {
	const kinds, rounds, runs = 30, 4, 20
	held, covered, width, raw, n := 0, 0, 0.0, 0.0, 0.0
	for run := range uint64(runs) {
		of, logins := newBench(run, 2, wild).rounds(kinds, rounds)
		got := costsOf(of, logins)
		for s, least := range []int{10, 20} {
			common := 0.0
			for k := range kinds {
				common += math.Log(got.of[s][k].Value/float64(least+k)/1e6) / kinds
			}
			for k := range kinds {
				f := got.of[s][k]
				if truth := float64(least+k) * 1e6 * math.Exp(common); f.Lo <= truth && truth <= f.Hi {
					held++
				}
				var logs []float64
				for i, o := range logins {
					if of[i] == k {
						logs = append(logs, math.Log(float64(cpu(o, side(s)))))
					}
				}
				n++
				width += math.Log(f.Hi/f.Lo) / 2
				raw += stats.Estimate{Err: 1, DF: float64(len(logs) - 1)}.Arm() * math.Sqrt(stats.Variance(logs)/float64(len(logs)))
			}
			if b := got.beside[s]; b.Lo <= 1.105 && 1.105 <= b.Hi {
				covered++
			}
		}
	}
	if covered < 2*runs*7/10 {
		t.Errorf("what logins beside others cost more is within %d of %d intervals", covered, 2*runs)
	}
	if width > raw*0.8 {
		t.Errorf("intervals are +-%.1f %% wide, and +-%.1f %% without the others", 100*width/n, 100*raw/n)
	}
	if part := float64(held) / n; part < 0.93 || part > 0.97 {
		t.Errorf("%.1f %% of the intervals hold what is true", 100*part)
	}
}

// TestCostsOfFewRounds: the same with a few kinds of login in a few rounds, as on a host.
func TestCostsOfFewRounds(t *testing.T) {
	const kinds, runs = 6, 120
	for _, rounds := range []int{3, 5} {
		held := 0.0
		for run := range uint64(runs) {
			b := newBench(run, 1, 0)
			var of []kindOf
			var logins []*record.Reading
			for range rounds {
				for _, k := range b.random.Perm(kinds) {
					of, logins = append(of, k), append(logins, b.login(k, alone))
					b.now++
				}
			}
			got, common := costsOf(of, logins).of[0], 0.0
			for k := range kinds {
				common += math.Log(got[k].Value/float64(10+k)/1e6) / kinds
			}
			for k, f := range got {
				if truth := float64(10+k) * 1e6 * math.Exp(common); f.Lo <= truth && truth <= f.Hi {
					held += 1.0 / kinds / runs
				}
			}
		}
		if held < 0.93 || held > 0.98 {
			t.Errorf("%d rounds: %.1f %% of the intervals hold what is true", rounds, 100*held)
		}
	}
}

// TestCostsAreLeftAlone: a kind that costs more is not taken for a disturbance, where nothing is
// disturbed nothing moves, and one login that is far off counts little.
func TestCostsAreLeftAlone(t *testing.T) {
	var of []kindOf
	var logins []*record.Reading
	for round := range 6 {
		for k := range 5 {
			cpu := 10 * time.Millisecond
			if k == 3 {
				cpu *= 8
			}
			cpu += time.Duration(round%2) * 10 * time.Microsecond
			if k == 2 && round == 4 {
				cpu *= 10
			}
			of = append(of, k)
			logins = append(logins, &record.Reading{ClientCPUNS: &cpu, ServerCPUNS: &cpu, Start: time.Unix(int64(round), int64(k)*1e8)})
		}
	}
	got := costsOf(of, logins)
	for k := range 5 {
		want := 10e6
		if k == 3 {
			want = 80e6
		}
		if f := got.of[0][k]; math.Abs(f.Value/want-1) > 0.02 || f.N != 6 {
			t.Errorf("kind %d: %v", k, f)
		}
	}
}

// TestFewLogins: one login of one kind, and none at all, have figures, too.
func TestFewLogins(t *testing.T) {
	if got := costsOf(nil, nil); len(got.of[0]) != 0 {
		t.Errorf("%v", got)
	}
	cpu := time.Millisecond
	one := &record.Reading{ClientCPUNS: &cpu}
	if f := costsOf([]kindOf{0}, []*record.Reading{one}).of[0][0]; math.Abs(f.Value-1e6) > 1 || f.N != 1 || !(f.Lo <= f.Value && f.Value <= f.Hi) {
		t.Errorf("%v", f)
	}
}
