package document

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
)

// folded is one row of the short table: options without a significant difference, under patterns
// that mean exactly them when typed for --cipher and --mac.
type folded struct {
	cipher, mac string // patterns; mac is "" where the ciphers carry their own tag
	options     []rank.Row
}

// foldOptions makes rows of options in one direction, in their order. The recommended and the
// present option keep their own rows.
func foldOptions(c *advise.Choice, direction int, offer alg.Offer) []folded {
	var out []folded
	taken := map[alg.Suite]bool{}
	for i, o := range c.Options {
		if taken[o.Suite] {
			continue
		}
		family := []rank.Row{o}
		if i >= c.Tied && i != c.Present.Option {
			family = familyOf(c, i, direction)
		}
		row, ok := foldFamily(family, offer)
		if !ok {
			row, _ = foldFamily(family[:1], offer)
		}
		for _, member := range row.options {
			taken[member.Suite] = true
		}
		out = append(out, row)
	}
	return out
}

// familyOf returns the options from i on that differ from it only by the length of the key and by
// how one MAC is applied, and share its group.
func familyOf(c *advise.Choice, i, direction int) []rank.Row {
	head := c.Options[i]
	var out []rank.Row
	for k, o := range c.Options[i:] {
		alike := family(o.Suite) == family(head.Suite) && o.Cells[direction].Group == head.Cells[direction].Group
		if alike && i+k != c.Present.Option {
			out = append(out, o)
		}
	}
	return out
}

// family returns a suite without the length of the key: aes-ctr and hmac-sha2-256.
func family(s alg.Suite) alg.Suite {
	return alg.Suite{Cipher: undigited(s.Cipher), MAC: alg.Primitive(s.MAC)}
}

func undigited(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// foldFamily merges options under patterns; ok is false where they are not all combinations of some
// ciphers and some MACs.
func foldFamily(family []rank.Row, offer alg.Offer) (row folded, ok bool) {
	var ciphers, macs []string
	for _, o := range family {
		ciphers, macs = appendNew(ciphers, o.Suite.Cipher), appendNew(macs, o.Suite.MAC)
	}
	return folded{pattern(ciphers, offer.Ciphers), pattern(macs, offer.MACs), family}, len(family) == len(ciphers)*len(macs)
}

// name returns the row's name as shown.
func (f folded) name() string { return strings.Join(text.NonEmpty(f.cipher, f.mac), " + ") }

// holds reports whether a suite is in the row, under any of its names.
func (f folded) holds(s alg.Suite) bool {
	return s.Cipher != "" && slices.ContainsFunc(f.options, func(o rank.Row) bool { return o.Suite.Computation() == s.Computation() })
}

// pattern returns the text to type for these names, among all: one name without its domain, a glob
// that matches them only, or a list.
func pattern(names, all []string) string {
	if len(names) == 1 {
		if short := Short(names[0]); slices.Equal(alg.Named(short, all), names) {
			return short
		}
		return clean(names[0])
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = Short(name)
	}
	prefix, suffix := common(short)
	glob := prefix + "*" + suffix
	if found := alg.Named(glob, all); len(found) == len(names) && !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(found, n) }) {
		return glob
	}
	return strings.Join(short, ",")
}

// common returns the longest beginning and end that all words share, without overlap.
func common(words []string) (prefix, suffix string) {
	prefix, suffix = words[0], words[0]
	shortest := len(words[0])
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		for !strings.HasSuffix(w, suffix) {
			suffix = suffix[1:]
		}
		shortest = min(shortest, len(w))
	}
	return prefix, suffix[max(0, len(prefix)+len(suffix)-shortest):]
}

// barOf returns the value of a cell's bar: its speed, or, where cells are ordered by cost, the
// bytes that a second of the busier side's CPU time moves.
func barOf(r *rank.Ranking, c rank.Cell) Point {
	if r.By != rank.Cost {
		return PointOf(c.Throughput.Shown, 1e6)
	}
	cost := r.Deciding(c).Shown
	if cost == nil || cost.Lo <= 0 {
		return Point{}
	}
	moved := cost.Mapped(func(ns float64) float64 { return 1e3 / ns })
	return PointOf(&moved, 1)
}

// barUnit returns the unit of barOf.
func barUnit(r *rank.Ranking) string {
	if r.By == rank.Cost {
		return "MB per second of CPU time"
	}
	return "MB/s"
}

// cells returns the cells of rows in a direction.
func cells(rows []rank.Row, direction int) (out []rank.Cell) {
	for _, o := range rows {
		out = append(out, o.Cells[direction])
	}
	return out
}

// speed returns the throughput of cells: a range; or, where it is not known well and so decides
// nothing, the mean with the union of the intervals.
func speed(r *rank.Ranking, cells []rank.Cell) string {
	if r.By != rank.Cost || len(r.Directions()) > 1 { // there is no room
		return span(cells, speedOf, 1e6)
	}
	p := meanPoint(cells, func(c rank.Cell) Point { return PointOf(c.Throughput.Shown, 1e6) })
	if !p.Known {
		return unknown
	}
	return stats.Interval{Value: p.Value, Lo: p.Lo, Hi: p.Hi}.Shown(unit.Digits, "")
}

// mean returns the mean of the bars of a row in a direction, with the union of their intervals.
func (f folded) mean(r *rank.Ranking, direction int) Point {
	return meanPoint(cells(f.options, direction), func(c rank.Cell) Point { return barOf(r, c) })
}

// meanPoint returns the mean of a figure of cells, with the union of their intervals.
func meanPoint(cells []rank.Cell, point func(rank.Cell) Point) (out Point) {
	n := 0.0
	for _, cell := range cells {
		p := point(cell)
		if !p.Known {
			continue
		}
		if !out.Known {
			out.Lo = p.Lo
		}
		out.Lo, out.Hi = min(out.Lo, p.Lo), max(out.Hi, p.Hi)
		out.Value, out.Known, n = out.Value+p.Value, true, n+1
		out.Predicted = out.Predicted || cell.Basis == rank.Predicted
	}
	out.Value /= max(1, n)
	return out
}

// span prints the range of a figure over cells: "631-643", one number where both ends round alike,
// "-" for none. Figures are divided by scale.
func span(cells []rank.Cell, figure func(rank.Cell) float64, scale float64) string {
	lo, hi := 0.0, 0.0
	for _, c := range cells {
		if v := figure(c) / scale; v > 0 {
			if lo == 0 || v < lo {
				lo = v
			}
			hi = max(hi, v)
		}
	}
	switch a, b := unit.Digits(lo), unit.Digits(hi); {
	case hi == 0:
		return "-"
	case a == b:
		return a
	default:
		return fmt.Sprintf("%s-%s", a, b)
	}
}

// cpuOf returns the CPU time of a cell, of both sides or of the client alone, in ns per byte; 0 if
// unknown.
func cpuOf(c rank.Cell) float64 { return c.Total.Value() }

// speedOf returns the throughput of a cell in bytes per second; 0 if unknown.
func speedOf(c rank.Cell) float64 { return c.Throughput.Value() }
