package methods

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/record"
)

// runsOf is a file of methods that take the given seconds per byte, with noise: n short
// and n long runs of each.
func runsOf(rng *rand.Rand, n int, secondsPerByte map[string]float64) *record.File {
	const size = 64 << 20
	f := &record.File{}
	for id, name := range []string{"pipe", "scp", "sftp"} {
		cost, ok := secondsPerByte[name]
		if !ok {
			continue
		}
		f.Methods = append(f.Methods, record.Method{ID: id + 1, Mode: record.Mode(name), SizeBytes: size})
		for range n {
			wall := func(seconds float64) time.Duration {
				return time.Duration(seconds * math.Exp(0.03*rng.NormFloat64()) * 1e9)
			}
			long := 0.2 + cost*size
			cpu, cpuLong := wall(0.05), wall(0.05+cost*size)
			f.Runs = append(f.Runs,
				record.Run{Method: id + 1, Kind: record.ShortRun, WallNS: wall(0.2), ClientCPUNS: &cpu},
				record.Run{Method: id + 1, Kind: record.LongRun, WallNS: wall(long), ClientCPUNS: &cpuLong})
		}
	}
	return f
}

func modeOf(m record.Method) string { return string(m.Mode) }

// TestCompareFindsWhatIsPlanted: a method that takes 40 % longer is shown, no other one.
func TestCompareFindsWhatIsPlanted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	found, wrong := 0, 0
	for range 40 {
		before := runsOf(rng, 8, map[string]float64{"pipe": 5e-9, "scp": 10e-9, "sftp": 12e-9})
		after := runsOf(rng, 8, map[string]float64{"pipe": 5e-9, "scp": 14e-9, "sftp": 12e-9})
		c := Compare([]string{"before", "after"}, [][]Result{Of(before), Of(after)})
		for _, ch := range c.Changes {
			speed, cost := ch.Speed[0], ch.Cost[0]
			if ch.Mode == "scp" {
				if speed.Shown() && cost.Shown() && speed.Log < 0 && cost.Log > 0 {
					found++
				}
				continue
			}
			if speed.Shown() || cost.Shown() {
				wrong++
			}
		}
		if worst := c.Worst(5, modeOf); found == 1 && (len(worst) != 1 || !strings.HasPrefix(worst[0], "scp in after: ")) {
			t.Errorf("worst: %q", worst)
		}
	}
	if found < 38 || wrong > 4 {
		t.Errorf("found %d of 40, and %d differences that are not there", found, wrong)
	}
}

// TestCompareHandComputed: the ratio of medians, and the doubt of runs of one machine.
func TestCompareHandComputed(t *testing.T) {
	exact := func(perByte float64) *record.File {
		f := &record.File{Methods: []record.Method{{ID: 1, Mode: "pipe", SizeBytes: 100e6}}}
		for range 4 {
			f.Runs = append(f.Runs,
				record.Run{Method: 1, Kind: record.ShortRun, WallNS: time.Second},
				record.Run{Method: 1, Kind: record.LongRun, WallNS: time.Second + time.Duration(perByte*100e6*1e9)})
		}
		return f
	}
	c := Compare([]string{"a", "b"}, [][]Result{Of(exact(1e-9)), Of(exact(2e-9))})
	r := c.Changes[0].Speed[0]
	// Runs without noise leave the level alone: exp(1.96 * sqrt(2) * 0.04) = 1.117.
	if i := r.Interval(); math.Abs(i.Value-0.5) > 1e-6 || math.Abs(i.Hi-0.5*1.117) > 0.001 || math.Abs(i.Lo-0.5/1.117) > 0.001 {
		t.Errorf("ratio %v", i)
	}
	if cost := c.Changes[0].Cost[0]; cost.Known() || cost.Shown() {
		t.Errorf("a cost of runs without CPU times: %v", cost)
	}
}

// TestCompareOfLittle: what has too few runs, or is not in all files, is not compared.
func TestCompareOfLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	one := runsOf(rng, 1, map[string]float64{"pipe": 5e-9, "scp": 10e-9})
	many := runsOf(rng, 6, map[string]float64{"pipe": 9e-9, "sftp": 10e-9})
	c := Compare([]string{"a", "b"}, [][]Result{Of(one), Of(many)})
	var modes []string
	for _, ch := range c.Changes {
		modes = append(modes, string(ch.Mode))
		if ch.Speed[0].Known() || ch.Speed[0].Shown() || ch.Cost[0].Shown() {
			t.Errorf("%s of one run: %v", ch.Mode, ch.Speed[0])
		}
	}
	if fmt.Sprint(modes) != "[pipe]" || c.Lacking != 1 {
		t.Errorf("%v, %d lacking", modes, c.Lacking)
	}
	if worst := c.Worst(0, modeOf); len(worst) > 0 {
		t.Errorf("worst %q", slices.Clip(worst))
	}
}
