package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/rank"
	"sshpace/internal/show/document"
)

// ClassicOptions are the options of Classic. Zero fields have the defaults named.
type ClassicOptions struct {
	Size  unit.Bytes // of the copy; default 4 GiB
	Top   int        // rows of each list; default 5
	Worst bool       // slowest first
}

// anyKex stands for the key exchange where no login was measured.
const anyKex = "<any>"

// implicit is what ssh -v prints for the MAC of an AEAD cipher.
const implicit = "<implicit>"

// Classic writes the lists that people know from shell loops over all ciphers, MACs and key
// exchanges: the best overall, per cipher, per MAC and per key exchange, and the averages, for each
// direction, below the answer that every report gives. Its rows have the fields of such logs, so
// that old awk scripts read them: $3 cipher, $5 MAC, $7 key exchange, $9 seconds.
func Classic(w io.Writer, r *rank.Ranking, a document.Answer, o ClassicOptions) error {
	o.Size, o.Top = cmp.Or(o.Size, 4<<30), cmp.Or(o.Top, 5)
	out := bufio.NewWriter(w)
	for _, line := range a.Says {
		fmt.Fprintf(out, "# %s\n", termsafe.Line(line))
	}
	fmt.Fprintln(out, "#")
	for i, d := range r.Directions() {
		m, err := document.MatrixOf(r, d, o.Size)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		classic{out, m, o}.write(r)
	}
	if len(r.Bulk) == 0 {
		return document.ErrNoMatrix
	}
	return out.Flush()
}

func (c classic) write(r *rank.Ranking) {
	m, o, out := c.m, c.o, c.w
	c.note(r)
	word := "Top"
	if o.Worst {
		word = "Worst"
		slices.Reverse(m.Rows)
	}
	say(out, "### %s-%d overall", word, o.Top)
	c.rows(m.Rows)
	for _, axis := range alg.Measured {
		c.lists(word, axis)
	}
	for _, axis := range alg.Measured {
		c.averages(axis)
	}
}

type classic struct {
	w io.Writer
	m *document.Matrix
	o ClassicOptions
}

// called holds the names that logs use for the parts of a combination.
var called = map[alg.Kind]string{alg.Cipher: "cipher", alg.MAC: "MAC", alg.Kex: "key exchange"}

// note says which rows are measured and which are not.
func (c classic) note(r *rank.Ranking) {
	if c.m.Copied {
		say(c.w, "# seconds for %s, each combination measured as a whole process", c.m.Size)
		fmt.Fprintln(c.w)
		return
	}
	measured, predicted := document.Bases(r, c.m.Direction)
	how := "login + size / throughput + rekeys"
	if !c.m.Logins {
		how = "size / throughput, without a login: none was measured"
	}
	say(c.w, "# seconds for %s (%s), rebuilt as %s;", c.m.Size, cmp.Or(string(c.m.Direction), "transfer"), how)
	say(c.w, "# cipher and MAC: %d measured, %d predicted; key exchanges: %d measured;", measured, predicted, len(r.Kex))
	say(c.w, "# lines stand for %d combinations: %s ciphers ignore the MAC", c.m.Total, implicit)
	fmt.Fprintln(c.w)
}

// rows writes the first rows of a sorted list of combinations, a line each.
func (c classic) rows(rows []document.Combination) {
	for i, row := range rows[:min(len(rows), c.o.Top)] {
		mark := ""
		if row.Basis == rank.Predicted {
			mark = " (predicted)"
		}
		if status := row.Suite.Status(); !status.Sound() {
			mark += " (" + document.Standing(status) + ")"
		}
		bounds := strings.TrimRight(" "+row.Seconds.Bounds(unit.Digits), " ")
		fmt.Fprintln(c.w, termsafe.Line(fmt.Sprintf("%d/%d cipher: %s  mac: %s  kex: %s - %s seconds%s", i+1, len(rows), row.Suite.Cipher,
			cmp.Or(row.Suite.MAC, implicit), cmp.Or(row.Suite.Kex, anyKex), unit.Digits(row.Seconds.Value), bounds+mark)))
	}
	fmt.Fprintln(c.w)
}

// lists writes the best rows of every name of an axis, best name first.
func (c classic) lists(word string, a alg.Kind) {
	say(c.w, "### %s-%d for each %s", word, c.o.Top, called[a])
	fmt.Fprintln(c.w)
	names, rows := c.by(a)
	for _, name := range names {
		say(c.w, "### %s: %s", called[a], name)
		c.rows(rows[name])
	}
}

// by groups the rows by the names of an axis, in the order of their first rows.
func (c classic) by(a alg.Kind) (names []string, rows map[string][]document.Combination) {
	rows = map[string][]document.Combination{}
	for _, row := range c.m.Rows {
		name := cmp.Or(row.Suite.Name(a), implicit)
		if rows[name] == nil {
			names = append(names, name)
		}
		rows[name] = append(rows[name], row)
	}
	return names, rows
}

// averages writes the mean of every name of an axis over the combinations of the rows, as a loop
// over all of them would have.
func (c classic) averages(a alg.Kind) {
	say(c.w, "### Average for each %s", called[a])
	names, rows := c.by(a)
	mean, count := map[string]float64{}, map[string]int{}
	for _, name := range names {
		for _, row := range rows[name] {
			mean[name] += row.Seconds.Value * float64(row.Names)
			count[name] += row.Names
		}
		mean[name] /= float64(count[name])
	}
	slices.SortStableFunc(names, func(x, y string) int {
		if c.o.Worst {
			x, y = y, x
		}
		return cmp.Compare(mean[x], mean[y])
	})
	t := text.Table{Columns: []text.Column{{}, {Right: true}, {Tight: true}}}
	for _, name := range names {
		t.Rows = append(t.Rows, []string{termsafe.Line(name), unit.Digits(mean[name]), fmt.Sprintf("seconds avg. of %d", count[name])})
	}
	fmt.Fprint(c.w, t.Text(0))
	fmt.Fprintln(c.w)
}
