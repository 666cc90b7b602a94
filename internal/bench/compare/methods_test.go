package compare

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// runsOf is a file of methods that take the given seconds per byte, with noise: n short and n long
// runs of each.
func runsOf(rng *rand.Rand, n int, secondsPerByte map[string]float64) *record.File {
	const size = 64 << 20
	f := &record.File{}
	for id, name := range []string{"pipe", "scp", "sftp"} {
		cost, ok := secondsPerByte[name]
		if !ok {
			continue
		}
		f.Subjects = append(f.Subjects, record.Subject{ID: id + 1, Method: &record.Method{Mode: record.Mode(name), SizeBytes: size}})
		for range n {
			wall := func(seconds float64) time.Duration {
				return time.Duration(seconds * math.Exp(0.03*rng.NormFloat64()) * 1e9)
			}
			long := 0.2 + cost*size
			cpu, cpuLong := wall(0.05), wall(0.05+cost*size)
			f.Readings = append(f.Readings,
				record.Reading{Subject: id + 1, Kind: record.ShortRun, WallNS: wall(0.2), ClientCPUNS: &cpu},
				record.Reading{Subject: id + 1, Kind: record.LongRun, WallNS: wall(long), ClientCPUNS: &cpuLong})
		}
	}
	return f
}

// ofMethods relates methods by their modes.
func ofMethods(files ...[]MethodResult) *Comparison {
	return OfMethods(make([]Input, len(files)), files, func(m record.Method) string { return string(m.Mode) })
}

// ratio is the change of a method's quantity in the second file.
func (c *Comparison) ratio(mode string, q Quantity) Ratio {
	for _, l := range c.Lines {
		if l.Name == mode && l.Quantity == q {
			return l.Ratios[0]
		}
	}
	return Ratio{}
}

// TestCompareFindsWhatIsPlanted: a method that takes 40 % longer is shown, no other one.
func TestCompareFindsWhatIsPlanted(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedtest.Of(t), 2))
	found, wrong := 0, 0
	for range 40 {
		before := runsOf(rng, 8, map[string]float64{"pipe": 5e-9, "scp": 10e-9, "sftp": 12e-9})
		after := runsOf(rng, 8, map[string]float64{"pipe": 5e-9, "scp": 14e-9, "sftp": 12e-9})
		c := ofMethods(MethodResults(before), MethodResults(after))
		if c.ratio("scp", Speed).Verdict == stats.Worse && c.ratio("scp", CPU).Verdict == stats.Better {
			found++
		}
		for _, mode := range []string{"pipe", "sftp"} {
			if c.ratio(mode, Speed).Verdict.Differs() || c.ratio(mode, CPU).Verdict.Differs() {
				wrong++
			}
		}
	}
	if found < 38 || wrong > 4 {
		t.Errorf("found %d of 40, and %d differences that are not there", found, wrong)
	}
}

// TestCompareHandComputed: the ratio of medians, and the doubt of runs of one machine.
func TestCompareHandComputed(t *testing.T) {
	exact := func(perByte float64) *record.File {
		f := &record.File{Subjects: []record.Subject{{ID: 1, Method: &record.Method{Mode: "pipe", SizeBytes: 100e6}}}}
		for range 4 {
			f.Readings = append(f.Readings,
				record.Reading{Subject: 1, Kind: record.ShortRun, WallNS: time.Second},
				record.Reading{Subject: 1, Kind: record.LongRun, WallNS: time.Second + time.Duration(perByte*100e6*1e9)})
		}
		return f
	}
	c := ofMethods(MethodResults(exact(1e-9)), MethodResults(exact(2e-9)))
	// Runs without noise leave the level alone: exp(1.96 * sqrt(2) * 0.04) = 1.117.
	if i := c.ratio("pipe", Speed).Interval(); math.Abs(i.Value-0.5) > 1e-6 || math.Abs(i.Hi-0.5*1.117) > 0.001 || math.Abs(i.Lo-0.5/1.117) > 0.001 {
		t.Errorf("ratio %v", i)
	}
	if cost := c.ratio("pipe", CPU); cost.Known() || cost.Verdict.Differs() {
		t.Errorf("a cost of runs without CPU times: %v", cost)
	}
}

// TestCompareOfLittle: what has too few runs, or is not in all files, is not compared.
func TestCompareOfLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedtest.Of(t), 4))
	one := runsOf(rng, 1, map[string]float64{"pipe": 5e-9, "scp": 10e-9})
	many := runsOf(rng, 6, map[string]float64{"pipe": 9e-9, "sftp": 10e-9})
	c := ofMethods(MethodResults(one), MethodResults(many))
	for _, l := range c.Lines {
		if l.Name != "pipe" || l.Ratios[0].Known() || l.Ratios[0].Verdict != stats.NotEnough {
			t.Errorf("%s of one run: %v", l.Name, l.Ratios[0])
		}
	}
	only := map[record.Mode]int{}
	for _, o := range c.Only {
		only[o.Method.Mode] = o.Files[0]
	}
	if want := (map[record.Mode]int{"scp": 0, "sftp": 1}); !maps.Equal(only, want) {
		t.Errorf("in one file only: %v, want %v", only, want)
	}
}

// Two methods of one run are compared round by round: what else the machine did meanwhile slowed
// both, and no doubt about the level of whole runs remains. Two runs have both doubts.
func TestPairsOfOneRun(t *testing.T) {
	f := &record.File{Campaign: record.Campaign{Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	for id := range 2 {
		f.Subjects = append(f.Subjects, record.Subject{ID: id + 1, Method: &record.Method{Mode: record.ModePipe, Direction: record.Upload, Client: fmt.Sprint("openssh ", id+1), Server: fmt.Sprint("openssh ", id+1), SizeBytes: 1 << 28}})
	}
	random := rand.New(rand.NewPCG(seedtest.Of(t), 2))
	for range 30 {
		load := math.Exp(0.5 * random.NormFloat64())
		for id, slower := range []float64{1, 1.1} {
			long := time.Duration(float64(time.Second) * load * slower * math.Exp(0.05*random.NormFloat64()))
			f.Readings = append(f.Readings, record.Reading{Subject: id + 1, Kind: record.ShortRun, WallNS: time.Millisecond}, record.Reading{Subject: id + 1, Kind: record.LongRun, WallNS: long})
		}
	}
	compared := func(other *record.File) *Comparison {
		before, _ := Between("openssh 1:openssh 1", MethodResults(f))
		after, _ := Between("openssh 2:openssh 2", MethodResults(other))
		return ofMethods(before, after)
	}
	c := compared(f)
	if i := c.ratio("", Speed).Interval(); math.Abs(i.Value-1/1.1) > 0.06 || i.Hi > 0.99 || c.Floor > 0 {
		t.Errorf("in one run: %v, and no number of runs shows less than %v", i, c.Floor)
	}
	later := *f
	later.Campaign.Started = f.Campaign.Started.Add(time.Hour)
	c = compared(&later)
	if i := c.ratio("", Speed).Interval(); i.Hi < 1 || c.Floor == 0 {
		t.Errorf("in two runs: %v, and no number of runs shows less than %v", i, c.Floor)
	}
}

// TestVersionsAreCompared: pairs of programs are the same pair in another version, with another key
// exchange. Other pairs are compared if they are named.
func TestVersionsAreCompared(t *testing.T) {
	of := func(client, server, cipher, kex string) MethodResult {
		return MethodResult{
			Method: record.Method{Mode: record.ModePipe, Direction: record.Upload, Client: client, Server: server, Suite: alg.NewSuite(cipher, "", kex)},
			Rate:   stats.Interval{Value: 1, N: 6}, measured: measured{speed: figures{Estimate: stats.Estimate{Err: 0.01, N: 6}}},
		}
	}
	const gcm, chacha = "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"
	old := []MethodResult{of("openssh 9.2p1", "openssh 9.2p1", gcm, "sntrup761x25519-sha512@openssh.com"), of("openssh 9.2p1", "dropbear 2022.83", chacha, "curve25519-sha256")}
	later := []MethodResult{of("openssh 10.5p1", "openssh 10.5p1", gcm, "mlkem768x25519-sha256")}
	c := ofMethods(old, later)
	if len(c.Lines) != 2 || c.Lines[0].Method.Server != "openssh 9.2p1" || len(c.Only) != 1 || c.Only[0].Method.Server != "dropbear 2022.83" {
		t.Errorf("compared: %v, only in one: %v", c.Lines, c.Only)
	}
	// A file that has both versions is compared version by version.
	both := append(slices.Clone(later), old...)
	c = ofMethods(old, both)
	if len(c.Lines) != 4 || len(c.Only) != 1 || c.Only[0].Method.Server != "openssh 10.5p1" || c.Only[0].Files[0] != 1 {
		t.Errorf("with both versions: %v, only in one: %v", c.Lines, c.Only)
	}
	before, _ := Between("openssh 9.2:openssh 9.2", both)
	after, names := Between("openssh 10:openssh 10", both)
	c = ofMethods(before, after)
	if len(c.Lines) != 2 || len(c.Only) != 0 || !slices.Equal(names, []string{"openssh 10.5p1:openssh 10.5p1"}) {
		t.Errorf("two pairs that were named: %v, only in one: %v, names %q", c.Lines, c.Only, names)
	}
	if _, names := Between("openssh:openssh", both); len(names) != 2 {
		t.Errorf("the pairs that fit: %q", names)
	}
	if found, _ := Between("dropbear:dropbear", old); len(found) > 0 {
		t.Errorf("a pair that is not there: %v", found)
	}
}

// TestCPUTimeThatIsNotKnownIsNone: two runs of one client, with a server whose CPU time can be read
// and with one whose cannot, take the same CPU time as far as that can be told: the client's, which
// is said.
func TestCPUTimeThatIsNotKnownIsNone(t *testing.T) {
	seed := seedtest.Of(t)
	seen := func(kinds ...record.RunKind) []MethodResult {
		f := runsOf(rand.New(rand.NewPCG(seed, 4)), 9, map[string]float64{"pipe": 5e-9})
		for i, run := range f.Readings {
			if server := 2 * *run.ClientCPUNS; slices.Contains(kinds, run.Kind) {
				f.Readings[i].ServerCPUNS = &server
			}
		}
		return MethodResults(f)
	}
	both, none, long := seen(record.ShortRun, record.LongRun), seen(), seen(record.LongRun)
	for _, c := range []struct {
		name  string
		files [][]MethodResult
		alone bool
	}{
		{"both", [][]MethodResult{both, both}, false},
		{"the first alone", [][]MethodResult{both, none}, true},
		{"the second alone", [][]MethodResult{none, both}, true},
		{"one of three", [][]MethodResult{both, both, none}, true},
		{"neither", [][]MethodResult{none, none}, true},
		{"of long runs alone", [][]MethodResult{both, long}, true},
	} {
		for _, l := range ofMethods(c.files...).Judge(Limit{Lines: cpuLines}).Lines {
			if math.Abs(l.Value()-1) > 0.01 || l.ClientAlone != c.alone || strings.Contains(l.String(), "the client's CPU time") != c.alone {
				t.Errorf("%s: a gate says %q, of the client alone: %v", c.name, l, l.ClientAlone)
			}
		}
	}
}

// TestPairsByTheirNames: a name that is one program's is not that of another that begins alike.
func TestPairsByTheirNames(t *testing.T) {
	var all []MethodResult
	for _, client := range []string{"new", "newer", "openssh 9.2p1 /usr/bin/ssh", "openssh 9.2p1 /opt/ssh", "openssh 8.9"} {
		all = append(all, MethodResult{Method: record.Method{Client: client, Server: "openssh 9.2"}, Rate: stats.Interval{Value: 1, N: 1}})
	}
	for pair, want := range map[string]int{"new:openssh": 1, "newe:openssh": 1, "openssh 9.2p1 /opt/ssh:openssh": 1, "openssh 9.2p1:openssh": 2, "openssh:openssh": 3, "openssh 8:openssh": 1, "ne:openssh": 2} {
		if _, names := Between(pair, all); len(names) != want {
			t.Errorf("%s: %q", pair, names)
		}
	}
}
