package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"sshpace/internal/alg"
	"sshpace/internal/clean"
	"sshpace/internal/rank"
	"sshpace/internal/unit"
)

// ClassicOptions of Classic. Zero fields have the defaults named.
type ClassicOptions struct {
	Size  unit.Bytes // of the copy; default 4 GiB
	Top   int        // rows of each list; default 5
	Worst bool       // slowest first
}

// implicit is what ssh -v prints for the MAC of an AEAD cipher.
const implicit = "<implicit>"

// Classic writes the lists that people know from shell loops over all
// ciphers, MACs and key exchanges: the best overall, per cipher, per MAC and per
// key exchange, and the averages. Its rows have the fields of such logs, so that
// old awk scripts read them: $3 cipher, $5 MAC, $7 key exchange, $9 seconds.
func Classic(w io.Writer, r *rank.Ranking, o ClassicOptions) error {
	o.Size, o.Top = cmp.Or(o.Size, 4<<30), cmp.Or(o.Top, 5)
	m, err := r.Matrix(o.Size)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	c := classic{out, m, o}
	c.note(r)
	word := "Top"
	if o.Worst {
		word = "Worst"
		slices.Reverse(m.Rows)
	}
	say(out, "### %s-%d overall", word, o.Top)
	c.rows(m.Rows)
	for _, axis := range axes {
		c.lists(word, axis)
	}
	for _, axis := range axes {
		c.averages(axis)
	}
	return out.Flush()
}

type classic struct {
	w io.Writer
	m *rank.Matrix
	o ClassicOptions
}

// axis is one of the three lists that a combination is made of.
type axis struct {
	name string
	of   func(alg.Suite) string
}

var axes = []axis{
	{"cipher", func(s alg.Suite) string { return s.Cipher }},
	{"MAC", func(s alg.Suite) string { return s.MAC }},
	{"key exchange", func(s alg.Suite) string { return s.Kex }},
}

// note says what is measured and what is not.
func (c classic) note(r *rank.Ranking) {
	if c.m.Copied {
		say(c.w, "# seconds for %s, each combination measured as a whole process", c.m.Size)
		fmt.Fprintln(c.w)
		return
	}
	measured, predicted := 0, 0
	for _, cell := range r.Bulk {
		switch {
		case cell.Direction != c.m.Direction:
		case cell.Basis == rank.Measured:
			measured++
		default:
			predicted++
		}
	}
	say(c.w, "# seconds for %s (%s), rebuilt as login + size / throughput + rekeys:", c.m.Size, c.m.Direction)
	say(c.w, "# %d pairs of cipher and MAC measured, %d predicted, %d key exchanges measured;", measured, predicted, len(r.Kex))
	say(c.w, "# %d rows stand for %d combinations: %s ciphers ignore the MAC", len(c.m.Rows), c.m.Total, implicit)
	fmt.Fprintln(c.w)
}

// rows writes the first rows of a sorted list.
func (c classic) rows(rows []rank.Combination) {
	for i, row := range rows[:min(len(rows), c.o.Top)] {
		mark := ""
		if row.Basis == rank.Predicted {
			mark = " (predicted)"
		}
		fmt.Fprintln(c.w, clean.Line(fmt.Sprintf("%d/%d cipher: %s  mac: %s  kex: %s - %s seconds ±%s%%%s", i+1, len(rows), row.Suite.Cipher,
			cmp.Or(row.Suite.MAC, implicit), row.Suite.Kex, figure(row.Seconds.Value), percent(100*row.Seconds.HalfWidth()), mark)))
	}
	fmt.Fprintln(c.w)
}

// lists writes the best rows of every name of an axis, best name first.
func (c classic) lists(word string, a axis) {
	say(c.w, "### %s-%d for each %s", word, c.o.Top, a.name)
	fmt.Fprintln(c.w)
	names, rows := c.by(a)
	for _, name := range names {
		say(c.w, "### %s: %s", a.name, name)
		c.rows(rows[name])
	}
}

// by sorts the rows by the names of an axis, in the order of their first rows.
func (c classic) by(a axis) (names []string, rows map[string][]rank.Combination) {
	rows = map[string][]rank.Combination{}
	for _, row := range c.m.Rows {
		name := cmp.Or(a.of(row.Suite), implicit)
		if rows[name] == nil {
			names = append(names, name)
		}
		rows[name] = append(rows[name], row)
	}
	return names, rows
}

// averages writes the mean of every name of an axis.
func (c classic) averages(a axis) {
	say(c.w, "### Average for each %s", a.name)
	names, rows := c.by(a)
	mean := map[string]float64{}
	for _, name := range names {
		for _, row := range rows[name] {
			mean[name] += row.Seconds.Value / float64(len(rows[name]))
		}
	}
	slices.SortStableFunc(names, func(x, y string) int {
		if c.o.Worst {
			x, y = y, x
		}
		return cmp.Compare(mean[x], mean[y])
	})
	for _, name := range names {
		row := fmt.Sprintf("%-40s %8s seconds avg. of %d", name, figure(mean[name]), len(rows[name]))
		fmt.Fprintln(c.w, clean.Line(row))
	}
	fmt.Fprintln(c.w)
}
