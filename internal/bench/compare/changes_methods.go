package compare

import (
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// MethodComparison relates the methods of several files to those of the first.
type MethodComparison struct {
	Files   []string       // the others are compared with the first
	Changes []MethodChange // of the methods that all files have figures of
	Only    []OnlyMethod   // methods without figures in some files
	level   float64        // of whole runs, if ratios between such are there
}

// MethodChange is a method with its change in each file but the first.
type MethodChange struct {
	ID int // of the method in the first file
	record.Method
	Speed []Ratio // unknown where one of them has fewer than two runs
	Cost  []Ratio // of CPU time per byte; above 1, and better, is more of it
	// ClientAlone: Cost is the client's, because the server's is not known in all files. Otherwise
	// it is that of both sides together.
	ClientAlone bool
}

// OnlyMethod is a method that has figures in some of the files.
type OnlyMethod struct {
	ID int `json:"id"`
	record.Method
	Files []int `json:"in_files"` // their places, from 0
}

// betweenRuns adds the doubt about the level of both runs to their ratio.
func betweenRuns(ratio stats.Estimate, level float64) stats.Estimate {
	return ratio.WithError(math.Sqrt2*level, 0)
}

// floor is the smallest change, as a share, that any number of runs could show in spite of that
// doubt.
func floor(level float64) float64 {
	return math.Expm1(betweenRuns(stats.Estimate{}, level).Arm())
}

// estimate returns the median as a logarithm; unknown for fewer than two values.
func estimate(values []float64) stats.Estimate {
	var logs []float64
	for _, v := range values {
		if v > 0 {
			logs = append(logs, math.Log(v))
		}
	}
	if len(logs) < 2 {
		return stats.Estimate{}
	}
	return stats.Medians([][]float64{logs}, 0, 0)[0]
}

// Methods relates the results of files to those of the first.
func Methods(files []string, results [][]MethodResult) *MethodComparison {
	c := &MethodComparison{Files: files}
	measured := make([][]*MethodResult, len(results))
	for i, own := range results {
		for j := range own {
			if own[j].Rate.N > 0 {
				measured[i] = append(measured[i], &own[j])
			}
		}
	}
	taken := map[*MethodResult]bool{}
	for _, own := range measured {
		for _, r := range own {
			if taken[r] {
				continue
			}
			var same []*MethodResult
			for _, others := range measured {
				same = append(same, counterpart(r, own, others))
			}
			for _, found := range same {
				taken[found] = true
			}
			c.add(r, same)
		}
	}
	var speeds, costs [][]Ratio
	for _, change := range c.Changes {
		speeds, costs = append(speeds, change.Speed), append(costs, change.Cost)
	}
	for k := range results[1:] {
		judge(ofFile(speeds, k))
		judge(ofFile(costs, k))
	}
	return c
}

// counterpart returns the result of another file to compare r with: the same method, or else that
// of the same makers in another version, where each file has only one; nil if there is none.
func counterpart(r *MethodResult, own, others []*MethodResult) *MethodResult {
	for _, other := range others {
		if r.alike(other, func(program string) string { return program }) {
			return other
		}
	}
	var found []*MethodResult
	for _, list := range [][]*MethodResult{own, others} {
		for _, x := range list {
			if r.alike(x, maker) {
				found = append(found, x)
			}
		}
	}
	if len(found) == 2 && found[0] == r { // itself, and one of the others
		return found[1]
	}
	return nil
}

// Nearest returns the methods of two files, with figures, that differ in the fewest properties; nil
// where one has none.
func Nearest(one, other []MethodResult) (a, b *MethodResult) {
	least := 0
	for i := range one {
		for j := range other {
			if one[i].Rate.N == 0 || other[j].Rate.N == 0 {
				continue
			}
			if n := one[i].differs(other[j].Method); a == nil || n < least {
				a, b, least = &one[i], &other[j], n
			}
		}
	}
	return a, b
}

// differs counts the properties in which methods differ.
func (r *MethodResult) differs(m record.Method) (n int) {
	for _, same := range []bool{
		r.Mode == m.Mode, r.Direction == m.Direction, r.Suite.Bulk() == m.Suite.Bulk(), maker(r.Client) == maker(m.Client), maker(r.Server) == maker(m.Server),
		r.Path == m.Path, r.Files == m.Files, r.FileBytes == m.FileBytes, r.Streams == m.Streams, r.Compression == m.Compression,
	} {
		if !same {
			n++
		}
	}
	return n
}

// alike reports whether two results are of one method, regardless of the key exchange that its
// programs prefer. name maps programs to the part that counts.
func (r *MethodResult) alike(other *MethodResult, name func(program string) string) bool {
	plain := func(m record.Method) record.Method {
		m.Client, m.Server, m.Suite = name(m.Client), name(m.Server), m.Suite.Bulk()
		return m
	}
	return plain(r.Method).Same(plain(other.Method))
}

// maker returns the name of an implementation without its version.
func maker(program string) string {
	name, _, _ := strings.Cut(program, " ")
	return name
}

// add compares a method if all files have it; nil stands for a file without it.
func (c *MethodComparison) add(m *MethodResult, results []*MethodResult) {
	change, only := MethodChange{ID: m.ID, Method: m.Method}, OnlyMethod{ID: m.ID, Method: m.Method}
	for i, r := range results {
		if r != nil {
			only.Files = append(only.Files, i)
		}
	}
	if len(only.Files) < len(results) {
		c.Only = append(c.Only, only)
		return
	}
	cost := bothOf
	if slices.ContainsFunc(results, func(r *MethodResult) bool { return !r.both.Known() }) {
		cost, change.ClientAlone = aloneOf, true
	}
	for _, r := range results[1:] {
		change.Speed = append(change.Speed, c.ratio(r, results[0], speedOf))
		change.Cost = append(change.Cost, c.ratio(r, results[0], cost))
	}
	c.Changes = append(c.Changes, change)
}

// Between returns the results of one pair of implementations, CLIENT:SERVER by their makers, with
// or without version, prepared for a comparison with another pair: without the names of programs,
// and of ciphers where there is only one. names lists the pairs that fit.
func Between(pair string, results []MethodResult) (chosen []MethodResult, names []string) {
	client, server, _ := strings.Cut(pair, ":")
	exactly := slices.ContainsFunc(results, func(r MethodResult) bool { return is(r.Client, client) && is(r.Server, server) })
	ciphers := map[string]bool{}
	for _, r := range results {
		if exactly && !(is(r.Client, client) && is(r.Server, server)) {
			continue
		}
		if !strings.HasPrefix(r.Client, client) || !strings.HasPrefix(r.Server, server) || r.Client == "" || r.Rate.N == 0 {
			continue
		}
		if name := r.Client + ":" + r.Server; !slices.Contains(names, name) {
			names = append(names, name)
		}
		r.Client, r.Server, r.Mode = "", "", ""
		ciphers[r.Suite.Cipher] = true
		chosen = append(chosen, r)
	}
	for i := range chosen {
		if len(ciphers) == 1 {
			chosen[i].Suite = alg.Suite{}
		}
	}
	return chosen, names
}

// is reports whether a program has a name, as a whole or up to the end of a word.
func is(program, name string) bool { return program == name || strings.HasPrefix(program, name+" ") }

// ratio returns a relative to b, with the doubt about the level of both runs if they are two.
func (c *MethodComparison) ratio(a, b *MethodResult, of func(*MethodResult) figures) Ratio {
	if !of(a).Known() || !of(b).Known() {
		return Ratio{Judged: stats.Judged{Verdict: stats.NotEnough}}
	}
	ratio, together := a.over(b, of)
	if together {
		return Ratio{Speed: ratio}
	}
	c.level = rank.MethodLevel
	return Ratio{Speed: betweenRuns(ratio, c.level)}
}

// Floor is the smallest slowdown, as a share, that any number of runs could show.
func (c *MethodComparison) Floor() float64 { return floor(c.level) }

// Lines returns all lines of the comparison, of speeds and of CPU time. name names a method.
func (c *MethodComparison) Lines(name func(record.Method) string) (lines []Line) {
	for _, ch := range c.Changes {
		for k, r := range ch.Speed {
			lines = append(lines, Line{Name: name(ch.Method), File: c.Files[k+1], Together: r.Together, Own: r.own(r.Speed)})
		}
		for k, r := range ch.Cost {
			l := Line{Name: name(ch.Method), File: c.Files[k+1], CPU: true, ClientAlone: ch.ClientAlone, Own: r.own(r.Speed.Inverse())}
			l.Together = l.Shown(r.Together)
			lines = append(lines, l)
		}
	}
	return lines
}

// own returns the interval of a known ratio by itself; zero for an unknown one.
func (r *Ratio) own(e stats.Estimate) stats.Interval {
	if !r.Speed.Known() {
		return stats.Interval{}
	}
	return e.Interval()
}

// Shows returns the smallest slowdown that any method could show, as a share, or the smallest rise
// of CPU time; 0 where none could show any.
func (c *MethodComparison) Shows(cpu bool) (least float64) {
	for _, ch := range c.Changes {
		ratios := ch.Speed
		if cpu {
			ratios = ch.Cost
		}
		for _, r := range ratios {
			least = r.least(least)
		}
	}
	return least
}
