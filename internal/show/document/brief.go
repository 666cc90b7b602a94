package document

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// Block is a piece of the report for a terminal: a title, a table, and lines
// below it. Each may be missing.
type Block struct {
	Title  string
	Fields []Field
	Heads  [][]string
	Rows   [][]string // a row may end early
	Lines  []string
}

// Field is a column of a Block.
type Field struct {
	Width int // characters; 0: as long as it is
	Right bool
	Cut   bool // what is longer is cut; else it pushes the rest
}

// everything is all that a ranking knows, in 80 columns.
func everything(r *rank.Ranking) []Block {
	var out []Block
	for _, d := range r.Directions() {
		out = append(out, briefBulk(r, d))
	}
	if len(r.Kex) > 0 {
		out = append(out, briefKex(r))
	}
	if len(r.Measurements) > 0 {
		out = append(out, briefMeasurements(r.Measurements))
	}
	if r.Ceilings != nil {
		out = append(out, briefCeilings(r.Ceilings))
	}
	return append(out, Block{Lines: append(trust(r), troubles(r)...)})
}

// methodBlocks say how the figures came about, how far to trust them, and what the
// words mean.
func methodBlocks(r *rank.Ranking, d *Document) []Block {
	out := []Block{{Title: "How it was measured", Lines: d.Method}, {Title: "How far to trust it", Lines: append(factLines(d.Quality), troubles(r)...)}}
	return append(out, Block{Title: "The machine", Lines: factLines(d.Environment)}, Block{Title: "Words", Lines: factLines(Glossary)})
}

func factLines(facts []Fact) []string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Name+": "+f.Value)
	}
	return out
}

// The fields of cells ranked by throughput. Ranked by cost, the doubt stands
// behind the costs: it is always that of the figure that orders the table.
var (
	bulkFields = []Field{
		{Width: 4, Right: true}, {Width: 2}, {Width: 17, Cut: true}, {Width: 17, Cut: true},
		{Width: 5, Right: true}, {Width: 5}, {Width: 6, Right: true}, {Width: 6, Right: true}, {},
	}
	bulkHeads = [][]string{{"", "", "", "", "", "", "client", "server"}, {"rank", "", "cipher", "MAC", "MB/s", "", "s/GB", "s/GB"}}
)

const (
	doubtField         = 5
	doubtBehindTheCost = 7
)

func briefBulk(r *rank.Ranking, d record.Direction) Block {
	b := Block{Title: title(string(d)) + " by " + r.BulkOrder() + "; s/GB: CPU seconds per GB", Fields: slices.Clone(bulkFields)}
	for _, head := range bulkHeads {
		b.Heads = append(b.Heads, slices.Clone(head))
	}
	anyForetold := false
	for _, c := range r.Bulk {
		if c.Direction != d {
			continue
		}
		throughput := shown(c.Throughput, 1e6)
		if foretold := c.Basis == rank.Measured && c.ThroughputBasis() == rank.Predicted; foretold {
			throughput, anyForetold = "~"+throughput, true
		}
		b.Rows = append(b.Rows, []string{
			fmt.Sprint(c.Rank), c.Group, Short(c.Suite.Cipher), Short(c.Suite.MAC), throughput, Spread(r.Deciding(c)),
			shown(c.Client, 1), shown(c.Server, 1), exceptions(c.Basis, c.Status),
		})
	}
	if r.By == rank.Cost {
		b.Fields = moved(b.Fields)
		for _, rows := range [][][]string{b.Heads, b.Rows} {
			for i := range rows {
				rows[i] = moved(rows[i])
			}
		}
	}
	if anyForetold {
		b.Lines = []string{"~ foretold from the costs: every connection of that cell was disturbed"}
	}
	return b
}

// moved puts the doubt behind the costs.
func moved[T any](row []T) []T {
	doubt := row[doubtField]
	return slices.Insert(slices.Delete(row, doubtField, doubtField+1), doubtBehindTheCost, doubt)
}

// shown is a figure without its interval, "-" for an unknown one.
func shown(q *rank.Quantity, scale float64) string {
	if q == nil {
		return "-"
	}
	return Figure(q.Value / scale)
}

// exceptions are the words at the end of a line: only what is not the normal case.
func exceptions(basis rank.Basis, status alg.Status) string {
	var words []string
	switch status {
	case alg.Weak, alg.Broken, "":
		words = append(words, Standing(status))
	}
	if basis == rank.Predicted {
		words = append(words, "pred.")
	}
	return strings.Join(words, " ")
}

var kexFields = []Field{
	{Width: 4, Right: true}, {Width: 2}, {Width: 36, Cut: true}, {Width: 6, Right: true}, {Width: 5},
	{Width: 6, Right: true}, {Width: 6, Right: true}, {},
}

func briefKex(r *rank.Ranking) Block {
	b := Block{Title: "Key exchange by " + r.KexOrder(), Fields: kexFields, Heads: [][]string{
		{"", "", "", "login", "", "client", "server"}, {"rank", "", "name", "ms", "", "CPU ms", "CPU ms"},
	}}
	for _, k := range r.Kex {
		mark := exceptions(rank.Measured, k.Status)
		if k.PostQuantum {
			mark = strings.TrimSpace("PQ " + mark)
		}
		b.Rows = append(b.Rows, []string{
			fmt.Sprint(k.Rank), k.Group, Short(k.Name), shown(k.Login, 1e6), Spread(k.Login), shown(k.Client, 1e6), shown(k.Server, 1e6), mark,
		})
		for _, alias := range k.Aliases {
			b.Rows = append(b.Rows, []string{"", "", "= " + alias})
		}
	}
	return b
}

// trust says how far the numbers can be trusted, a line each.
func trust(r *rank.Ranking) []string {
	var out []string
	add := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	n, m, h := r.Noise, r.Model, r.Harness
	known := n.Throughput > 0 || n.Login > 0
	add(known, "noise floor  %s", noiseFloor(n))
	add(known, "             equal things differ by less; one letter: not told apart;")
	add(r.Merged, "             or the order depends on what other guests of the machine do;")
	add(known, "             ± is where 95 %% of repeated runs on this machine find the figure")
	add(m.HoldoutCells > 0, "prediction   off by %s", holdout(m))
	add(len(r.Bulk) > 0, "basis        %s", basis(r))
	add(h.CPUShare > 0, "harness      %s", harnessShare(h))
	failed := r.FailureText()
	add(failed != "", "failed       %s of %d trials", failed, r.Trials)
	add(r.Ended != "", "ended by     %s", r.Ended)
	return out
}

// basis counts what was measured and what predicted.
func basis(r *rank.Ranking) string {
	connections := 0
	for _, c := range r.Bulk {
		connections += connectionsOf(c)
	}
	measured, predicted := bases(r)
	text := unit.Count(measured, "combination")
	if turns := r.Slicing.Slices; turns > 0 {
		text += fmt.Sprintf(", %d turns", turns)
	}
	text += ", " + unit.Count(connections, "connection")
	if predicted > 0 {
		text += fmt.Sprintf(", %d predicted", predicted)
	}
	return text
}

// troubles lists failures and warnings.
func troubles(r *rank.Ranking) []string {
	var out []string
	for _, f := range r.Failed {
		out = append(out, fmt.Sprintf("failed: %s: %s", f.Suite, strings.TrimSpace(string(f.Outcome)+" "+f.Detail)))
	}
	for _, warning := range r.Warnings {
		out = append(out, "warning: "+warning.Text)
		if warning.Hint != "" {
			out = append(out, "   hint: "+warning.Hint)
		}
	}
	return out
}

// cleanBlocks makes what files and hosts said safe to show.
func cleanBlocks(blocks []Block) []Block {
	clean := func(list []string) {
		for i := range list {
			list[i] = text(list[i])
		}
	}
	for i := range blocks {
		blocks[i].Title = text(blocks[i].Title)
		clean(blocks[i].Lines)
		for _, row := range slices.Concat(blocks[i].Heads, blocks[i].Rows) {
			clean(row)
		}
	}
	return blocks
}
