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

// result is a subject with its figures in one file.
type result struct {
	Subject
	*measured
}

// measured are the figures of a subject; each may be unknown.
type measured struct {
	speed, both, alone, wall figures // both and alone are CPU times: of both sides, and of the client
	run                      int64   // when its run began, which names it; 0: unknown
	id                       int     // in the run
}

// figures is a quantity, and its value in each long run, in their order; 0 where a run does not
// show it.
type figures struct {
	stats.Estimate
	each []float64
}

// manyRounds are enough to make up for the smaller degrees of freedom of pairs.
const manyRounds = 8

// over returns the ratio of figures to others: within one run round by round, which removes the
// effect of other work on the machine.
func (f figures) over(other figures, together bool) stats.Estimate {
	if n := len(f.each); !together || n < manyRounds || n != len(other.each) {
		return f.Over(other.Estimate)
	}
	var rounds []float64
	for i, v := range f.each {
		if v > 0 && other.each[i] > 0 {
			rounds = append(rounds, v/other.each[i])
		}
	}
	return estimate(rounds)
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

// relation relates the results of files of one kind.
type relation struct {
	*Comparison
	table       Table
	quantities  []Quantity // the wall time is not judged
	doubt       float64    // standard error of the level of a whole run
	counterpart func(r result, own, others []result) *measured
}

// relate compares the results of files with those of the first, and lists those that some files
// lack.
func (x relation) relate(files [][]result) {
	taken := map[*measured]bool{}
	for _, own := range files {
		for _, r := range own {
			if taken[r.measured] {
				continue
			}
			var same []*measured
			only := Only{Table: x.table, Subject: r.Subject}
			for i, others := range files {
				if found := x.counterpart(r, own, others); found != nil {
					same, only.Files = append(same, found), append(only.Files, i)
					taken[found] = true
				}
			}
			if len(same) < len(files) {
				x.Only = append(x.Only, only)
				continue
			}
			x.add(r.Subject, same)
		}
	}
	for k := range files[1:] {
		judge(x.Lines, Speed, k, k+1)
		judge(x.Lines, CPU, k, k+1)
	}
}

// add compares a subject that all files have.
func (x relation) add(s Subject, results []*measured) {
	clientAlone := slices.ContainsFunc(results, func(m *measured) bool { return !m.both.Known() })
	for _, q := range x.quantities {
		l := Line{Table: x.table, Subject: s, Quantity: q, ClientAlone: q == CPU && clientAlone}
		of := func(m *measured) figures {
			switch {
			case q == Speed:
				return m.speed
			case q == Wall:
				return m.wall
			case clientAlone:
				return m.alone
			}
			return m.both
		}
		for _, m := range results[1:] {
			l.Ratios = append(l.Ratios, x.ratio(m, results[0], of))
		}
		x.Lines = append(x.Lines, l)
	}
}

// ratio returns a relative to b, with the doubt about the level of both runs if they are two.
func (x relation) ratio(a, b *measured, of func(*measured) figures) Ratio {
	if !of(a).Known() || !of(b).Known() {
		return Ratio{}
	}
	if a.within(b) {
		return Ratio{Estimate: of(a).over(of(b), true)}
	}
	level := math.Sqrt2 * x.doubt
	x.Floor = floor(level)
	return Ratio{Estimate: of(a).over(of(b), false).WithError(level, 0)}
}

// within reports whether two results are of one run.
func (m *measured) within(other *measured) bool {
	return m.run != 0 && m.run == other.run && m.id != other.id
}

// LoginKind is the cost of a kind of login in a file.
type LoginKind struct {
	Factor, Level string
	Client        stats.Interval  // CPU time
	Server        *stats.Interval // of the server; nil: unknown
	Wall          stats.Interval
}

// CPU returns the CPU time of both sides together, or of the client alone.
func (k LoginKind) CPU(clientAlone bool) stats.Interval {
	if clientAlone {
		return k.Client
	}
	return k.Client.Plus(*k.Server)
}

// OfLogins relates the logins of files, taken apart, to those of the first.
func OfLogins(inputs []Input, files [][]LoginKind) *Comparison {
	all := make([][]result, len(files))
	for i, kinds := range files {
		for _, k := range kinds {
			m := &measured{alone: figures{Estimate: k.Client.Estimate()}, wall: figures{Estimate: k.Wall.Estimate()}}
			if k.Server != nil {
				m.both.Estimate = k.CPU(false).Estimate()
			}
			if k.Wall.N > 0 {
				all[i] = append(all[i], result{Subject{Name: k.Level, Factor: k.Factor}, m})
			}
		}
	}
	c := &Comparison{Inputs: inputs}
	relation{c, Logins, []Quantity{CPU, Wall}, rank.SplitLoginLevel, func(r result, _, others []result) *measured {
		for _, other := range others {
			if other.Name == r.Name && other.Factor == r.Factor {
				return other.measured
			}
		}
		return nil
	}}.relate(all)
	return c
}

// OfMethods relates the methods of files to those of the first. name names a method.
func OfMethods(inputs []Input, files [][]MethodResult, name func(record.Method) string) *Comparison {
	all := make([][]result, len(files))
	for i, own := range files {
		for k := range own {
			if r := &own[k]; r.Rate.N > 0 {
				all[i] = append(all[i], result{Subject{Name: name(r.Method), Suite: r.Suite, Direction: r.Direction, Method: &r.Method}, &r.measured})
			}
		}
	}
	c := &Comparison{Inputs: inputs}
	relation{c, Methods, []Quantity{Speed, CPU}, rank.MethodLevel, sameMethod}.relate(all)
	return c
}

// sameMethod returns the result of another file to compare r with: the same method, or else that of
// the same makers in another version, where each file has only one; nil if there is none.
func sameMethod(r result, own, others []result) *measured {
	for _, other := range others {
		if alike(*r.Method, *other.Method, func(program string) string { return program }) {
			return other.measured
		}
	}
	var found []*measured
	for _, list := range [][]result{own, others} {
		for _, x := range list {
			if alike(*r.Method, *x.Method, maker) {
				found = append(found, x.measured)
			}
		}
	}
	if len(found) == 2 && found[0] == r.measured { // itself, and one of the others
		return found[1]
	}
	return nil
}

// alike reports whether two methods are one, regardless of the key exchange that their programs
// prefer. name maps programs to the part that counts.
func alike(one, other record.Method, name func(program string) string) bool {
	plain := func(m record.Method) record.Method {
		m.Client, m.Server, m.Suite = name(m.Client), name(m.Server), m.Suite.Bulk()
		return m
	}
	return plain(one).Same(plain(other))
}

// maker returns the name of an implementation without its version.
func maker(program string) string {
	name, _, _ := strings.Cut(program, " ")
	return name
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
