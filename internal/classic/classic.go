// Package classic rebuilds the lists that people know from shell loops over all ciphers, MACs and
// key exchanges: seconds of a copy with every combination.
package classic

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

// Options of the lists. Zero fields have the defaults named.
type Options struct {
	Size  unit.Bytes // of the copy; default 4 GiB
	Top   int        // rows of each list; default 5
	Worst bool       // slowest first
}

// anyKex stands for the key exchange where no login was measured.
const anyKex = "<any>"

// implicit is what ssh -v prints for the MAC of an AEAD cipher.
const implicit = "<implicit>"

// Write writes the best overall, per cipher, per MAC and per key exchange, and the averages, for
// each direction, below the answer that every report gives. Its rows have the fields of such logs,
// so that old awk scripts read them: $3 cipher, $5 MAC, $7 key exchange, $9 seconds.
func (o Options) Write(w io.Writer, r *rank.Ranking, a document.Answer) error {
	if len(r.Bulk) == 0 {
		return errNone
	}
	o.Size, o.Top = cmp.Or(o.Size, 4<<30), cmp.Or(o.Top, 5)
	out := bufio.NewWriter(w)
	for _, line := range a.Says {
		fmt.Fprintf(out, "# %s\n", termsafe.Line(line))
	}
	fmt.Fprintln(out, "#")
	for i, d := range r.Directions() {
		if i > 0 {
			fmt.Fprintln(out)
		}
		lists{out, matrixOf(r, d, o.Size), o}.write(r)
	}
	return out.Flush()
}

func (l lists) write(r *rank.Ranking) {
	m, o, out := l.m, l.o, l.w
	l.note(r)
	word := "Top"
	if o.Worst {
		word = "Worst"
		slices.Reverse(m.Rows)
	}
	say(out, "### %s-%d overall", word, o.Top)
	l.rows(m.Rows)
	for _, axis := range alg.Measured {
		l.each(word, axis)
	}
	for _, axis := range alg.Measured {
		l.averages(axis)
	}
}

type lists struct {
	w io.Writer
	m *matrix
	o Options
}

// called holds the names that logs use for the parts of a combination.
var called = map[alg.Kind]string{alg.Cipher: "cipher", alg.MAC: "MAC", alg.Kex: "key exchange"}

// note says which rows are measured and which are not.
func (l lists) note(r *rank.Ranking) {
	if l.m.Copied {
		say(l.w, "# seconds for %s, each combination measured as a whole process", l.m.Size)
		fmt.Fprintln(l.w)
		return
	}
	measured, predicted := document.Bases(r, l.m.Direction)
	how := "login + size / throughput + rekeys"
	if !l.m.Logins {
		how = "size / throughput, without a login: none was measured"
	}
	say(l.w, "# seconds for %s (%s), rebuilt as %s;", l.m.Size, cmp.Or(string(l.m.Direction), "transfer"), how)
	say(l.w, "# cipher and MAC: %d measured, %d predicted; key exchanges: %d measured;", measured, predicted, len(r.Kex))
	say(l.w, "# lines stand for %d combinations: %s ciphers ignore the MAC", l.m.Total, implicit)
	fmt.Fprintln(l.w)
}

// rows writes the first rows of a sorted list of combinations, a line each.
func (l lists) rows(rows []combination) {
	for i, row := range rows[:min(len(rows), l.o.Top)] {
		mark := ""
		if row.Basis == rank.Predicted {
			mark = " (predicted)"
		}
		if status := row.Suite.Status(); !status.Sound() {
			mark += " (" + document.Standing(status) + ")"
		}
		bounds := strings.TrimRight(" "+row.Seconds.Bounds(unit.Digits), " ")
		fmt.Fprintln(l.w, termsafe.Line(fmt.Sprintf("%d/%d cipher: %s  mac: %s  kex: %s - %s seconds%s", i+1, len(rows), row.Suite.Cipher,
			cmp.Or(row.Suite.MAC, implicit), cmp.Or(row.Suite.Kex, anyKex), unit.Digits(row.Seconds.Value), bounds+mark)))
	}
	fmt.Fprintln(l.w)
}

// each writes the best rows of every name of an axis, best name first.
func (l lists) each(word string, a alg.Kind) {
	say(l.w, "### %s-%d for each %s", word, l.o.Top, called[a])
	fmt.Fprintln(l.w)
	names, rows := l.by(a)
	for _, name := range names {
		say(l.w, "### %s: %s", called[a], name)
		l.rows(rows[name])
	}
}

// by groups the rows by the names of an axis, in the order of their first rows.
func (l lists) by(a alg.Kind) (names []string, rows map[string][]combination) {
	rows = map[string][]combination{}
	for _, row := range l.m.Rows {
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
func (l lists) averages(a alg.Kind) {
	say(l.w, "### Average for each %s", called[a])
	names, rows := l.by(a)
	mean, count := map[string]float64{}, map[string]int{}
	for _, name := range names {
		for _, row := range rows[name] {
			mean[name] += row.Seconds.Value * float64(row.Names)
			count[name] += row.Names
		}
		mean[name] /= float64(count[name])
	}
	slices.SortStableFunc(names, func(x, y string) int {
		if l.o.Worst {
			x, y = y, x
		}
		return cmp.Compare(mean[x], mean[y])
	})
	t := text.Table{Columns: []text.Column{{}, {Right: true}, {Tight: true}}}
	for _, name := range names {
		t.Rows = append(t.Rows, []string{termsafe.Line(name), unit.Digits(mean[name]), fmt.Sprintf("seconds avg. of %d", count[name])})
	}
	fmt.Fprint(l.w, t.Text(0))
	fmt.Fprintln(l.w)
}

// say writes a line of text, or as many as it takes.
func say(w io.Writer, format string, args ...any) {
	for _, line := range text.Line(termsafe.Line(fmt.Sprintf(format, args...)), text.Columns) {
		fmt.Fprintln(w, line)
	}
}
