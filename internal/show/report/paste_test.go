package report_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"regexp"
	"strings"
	"testing"

	"sshpace/internal/bench/benchtest"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/report"
)

func hostile(t *testing.T) *document.Document {
	t.Helper()
	r, f := benchtest.Ranking(t, 1, record.Upload)
	benchtest.Spoil(r)
	return document.OfRanking(r, f, document.Options{})
}

func TestCSVHoldsNoFormula(t *testing.T) {
	for _, table := range hostile(t).TableNames() {
		var out bytes.Buffer
		if err := report.CSV(&out, hostile(t), table); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		for _, row := range rows {
			for _, cell := range row {
				if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
					t.Errorf("%s: %q would be calculated", table, cell)
				}
			}
		}
	}
}

// unescaped finds what CommonMark would take for an element, a link or code.
var unescaped = regexp.MustCompile("(^|[^\\\\])(<|\\[[^\\]]*[^\\\\]\\]\\(|`)")

func TestMarkdownIsLiteral(t *testing.T) {
	var out bytes.Buffer
	if err := report.Markdown(&out, hostile(t)); err != nil {
		t.Fatal(err)
	}
	columns := 0
	for line := range strings.Lines(out.String()) {
		if found := unescaped.FindString(line); found != "" {
			t.Errorf("%q in %q", found, line)
		}
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		bars := strings.Count(line, "|") - strings.Count(line, `\|`)
		if columns == 0 {
			columns = bars
		}
		if bars != columns {
			t.Errorf("%d bars, want %d: %s", bars, columns, line)
		}
	}
	if !strings.Contains(out.String(), "&lt;script&gt;") {
		t.Error("the hostile text is not shown")
	}
}

// What TeX would act on is only in the commands that we write, and each row has all columns.
func TestLaTeXIsLiteral(t *testing.T) {
	ours := regexp.MustCompile(`\\(text(backslash|asciicircum|asciitilde|less|greater|bar)\{\}|[{}$&%#_])|\{[[*]\}`)
	for _, name := range hostile(t).TableNames() {
		var out bytes.Buffer
		if err := report.LaTeX(&out, hostile(t), name); err != nil {
			t.Fatal(err)
		}
		_, columns, _ := strings.Cut(out.String(), `\begin{tabular}{`)
		columns, rows, _ := strings.Cut(columns, "}\n\\toprule\n")
		rows = strings.Replace(strings.TrimSuffix(rows, "\\bottomrule\n\\end{tabular}}\n"), "\\midrule\n", "", 1)
		for row := range strings.Lines(rows) {
			cells := strings.Split(strings.TrimSuffix(row, " \\\\\n"), " & ")
			if len(cells) != len(columns) {
				t.Errorf("%s: %d cells in %d columns: %s", name, len(cells), len(columns), row)
			}
			if found := strings.IndexAny(ours.ReplaceAllString(strings.Join(cells, ""), ""), `\{}$&%#_^~<>|[*`); found >= 0 {
				t.Errorf("%s: TeX would act on this: %s", name, row)
			}
		}
	}
}

// A table fits one column of a paper, about 55 characters of its small print, with en dashes for
// ranges and without what is the same in all rows; columns that are asked for are all there.
func TestLaTeXFitsOneColumn(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	d := document.OfRanking(r, f, document.Options{})
	for _, name := range []string{"ranking", "kex"} {
		var out bytes.Buffer
		if err := report.LaTeX(&out, d, name); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			shown := strings.NewReplacer(" & ", " ", ` \\`, "", "--", "-", `\`, "").Replace(strings.TrimSpace(line))
			if strings.Contains(line, " & ") && len(shown) > 58 {
				t.Errorf("%s: %d characters: %s", name, len(shown), shown)
			}
			if strings.Contains(line, "(") && strings.Contains(line, " & ") && !strings.Contains(line, "--") {
				t.Errorf("%s: no en dash: %s", name, line)
			}
		}
	}
	picked, err := d.Pick([]string{"cipher", "throughput", "client", "rank"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.LaTeX(&out, picked, "ranking"); err != nil || !strings.Contains(out.String(), `\begin{tabular}{lrrr}`) {
		t.Errorf("%v:\n%.200s", err, out.String())
	}
	if _, err := d.Pick([]string{"nosuch"}); !errors.Is(err, document.ErrNoSuch) {
		t.Errorf("a column that is not there: %v", err)
	}
}

// Several tables are written one after the other.
func TestSeveralTables(t *testing.T) {
	d := hostile(t)
	var rows, text bytes.Buffer
	if err := report.CSV(&rows, d, "ranking", "kex"); err != nil {
		t.Fatal(err)
	}
	if err := report.Markdown(&text, d, "ranking", "kex"); err != nil {
		t.Fatal(err)
	}
	bulk, kex, found := strings.Cut(rows.String(), "\n\n")
	if !found || !strings.HasPrefix(bulk, "rank,group,cipher,") || !strings.HasPrefix(kex, "rank,group,kex,") {
		t.Errorf("CSV of two tables: %.60q and %.60q", bulk, kex)
	}
	if n := strings.Count(text.String(), "\n\n## ") + 1; n != 2 {
		t.Errorf("Markdown of two tables has %d heads", n)
	}
}

func TestTablesThatAreNotThere(t *testing.T) {
	d := hostile(t)
	var out bytes.Buffer
	for _, err := range []error{report.CSV(&out, d, "none"), report.Markdown(&out, d, "none"), report.LaTeX(&out, d, "none")} {
		if err == nil || !strings.Contains(err.Error(), "there are: ranking, kex") {
			t.Errorf("got %v", err)
		}
	}
	if err := report.CSV(&out, &document.Document{}); err == nil {
		t.Error("a document without tables makes CSV")
	}
}
