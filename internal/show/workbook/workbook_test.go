package workbook_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"sshpace/internal/show/booktest"
	"sshpace/internal/show/workbook"
)

// written is a workbook as it is read again.
func written(t *testing.T, b *workbook.Book) *booktest.Book {
	t.Helper()
	var out bytes.Buffer
	if err := b.Write(&out); err != nil {
		t.Fatal(err)
	}
	return booktest.Read(t, out.Bytes())
}

// Texts come back as they were; only what XML does not have is replaced.
func TestTexts(t *testing.T) {
	texts := map[string]string{
		"=1+2": "=1+2", " <&>\"' ": " <&>\"' ", "two\nlines\tof\rtext": "two\nlines\tof\rtext", "_x0041_": "_x0041_", "__x005F_x": "__x005F_x", "_x": "_x",
		"\x00\x1b[2J": "\uFFFD\uFFFD[2J", "\xff": "\uFFFD", "😀": "😀", strings.Repeat("x", 40000): strings.Repeat("x", 32767), strings.Repeat("😀", 20000): strings.Repeat("😀", 16383),
	}
	for text, want := range texts {
		b := &workbook.Book{}
		s := b.Sheet("a & b")
		s.Text(2, 3, text, b.Style(workbook.Style{Wrap: true}))
		cell := written(t, b).Sheet(t, "a & b").Cell("B3")
		if got := cell.Value(); got != want {
			t.Errorf("%.40q came back as %.40q, want %.40q", text, got, want)
		}
		if cell.Formula != nil {
			t.Errorf("%.40q is the formula %q", text, *cell.Formula)
		}
	}
}

// Numbers are where they were put, in every column that a sheet has.
func TestNumbers(t *testing.T) {
	const columns = 16384
	b := &workbook.Book{}
	s := b.Sheet("numbers")
	for column := 1; column <= columns; column++ {
		s.Number(column, 1, float64(column)/4, 0)
	}
	rows := written(t, b).Sheet(t, "numbers").Rows()
	if len(rows) != 1 || len(rows[0]) != columns || rows[0][0] != "0.25" || rows[0][columns-1] != "4096" {
		t.Errorf("%d rows", len(rows))
	}
}

func TestLayout(t *testing.T) {
	b := &workbook.Book{}
	b.Sheet("first").Text(1, 1, "x", 0)
	s := b.Sheet("second's")
	style := b.Style(workbook.Style{Bold: true, Size: 15, Fill: "EEF1F4", Format: "0.0"})
	s.Text(1, 1, "head", style)
	s.Width(1, 2, 30)
	s.Height(1, 45)
	s.Freeze(1, 1)
	s.Filter(2, 9)
	s.Color(2, 2, 3, 9, workbook.Scale{Least: "000000", Mid: "777777", Greatest: "FFFFFF"})
	file := written(t, b)
	second := file.Sheet(t, "second's")
	if w := second.Width(2); w != 30 {
		t.Errorf("width %v", w)
	}
	if h := second.Height(1); h != 45 {
		t.Errorf("height %v", h)
	}
	if p := second.Pane; p.State != "frozen" || p.Columns != 1 || p.Rows != 1 {
		t.Errorf("pane %+v", p)
	}
	if f := second.Scales; len(f) != 1 || f[0].Area != "B2:C9" {
		t.Errorf("formats %+v", f)
	}
	if text := file.Parts["xl/worksheets/sheet2.xml"]; !strings.Contains(text, `<cfvo type="max"/><color rgb="FF000000"/><color rgb="FF777777"/><color rgb="FFFFFFFF"/>`) {
		t.Errorf("no scale of colors in %s", text)
	}
	if areas := file.Areas; len(areas) != 1 || areas[0] != "'second''s'!$A$1:$B$9" {
		t.Errorf("filter %q", areas)
	}
	if got := file.Look(second.Cell("A1")); !got.Bold || got.Size != 15 || got.Format != "0.0" || got.Pattern != "solid" {
		t.Errorf("style %+v", got)
	}
	if text := file.Parts["xl/styles.xml"]; !strings.Contains(text, `<fgColor rgb="FFEEF1F4"/>`) {
		t.Errorf("no fill in %s", text)
	}
}

// Rows that are made while they are written come behind the others, up to what a sheet can hold.
func TestRest(t *testing.T) {
	many := func(n int) *workbook.Book {
		b := &workbook.Book{}
		s := b.Sheet("rest")
		s.Text(1, 2, "head", 0)
		s.Rest(func(yield func([]workbook.Cell) bool) {
			for i := range n {
				if !yield([]workbook.Cell{{Column: 1, Number: float64(i)}}) {
					return
				}
			}
		})
		return b
	}
	if got := written(t, many(3)).Sheet(t, "rest").Cell("A5").Value(); got != "2" {
		t.Errorf("%q", got)
	}
	if err := many(1 << 20).Write(io.Discard); err == nil || !strings.Contains(err.Error(), "1048576 rows") {
		t.Errorf("too many rows: %v", err)
	}
}

// A chart shows the cells that it names.
func TestChart(t *testing.T) {
	b := &workbook.Book{}
	b.Sheet("plain")
	for range 2 {
		s := b.Sheet("charts")
		s.Text(2, 1, "MB/s", 0)
		s.Text(1, 2, "aes", 0)
		s.Number(2, 2, 3, 0)
		c := workbook.Chart{Column: 4, Row: 1, Width: 400, Height: 200, Title: "<speed>", Labels: 1, First: 2, Last: 2, Series: []workbook.Series{{Column: 2, Color: "0072B2", Minus: 5, Plus: 6}}}
		s.Chart(c)
		c.Stacked = true
		s.Chart(c)
	}
	text := written(t, b).Parts["xl/charts/chart4.xml"]
	for _, want := range []string{"&lt;speed&gt;", "'charts'!$A$2<", "'charts'!$B$1<", `<c:grouping val="stacked"/>`, "0072B2",
		`<c:plus><c:numRef><c:f>'charts'!$F$2</c:f></c:numRef></c:plus><c:minus><c:numRef><c:f>'charts'!$E$2</c:f>`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
