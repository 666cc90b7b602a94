package workbook_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/booktest"
	"sshpace/internal/show/document"
	"sshpace/internal/show/workbook"
)

func write(t *testing.T, d *document.Document, f *record.File) (path string, book *booktest.Book) {
	t.Helper()
	var out bytes.Buffer
	if err := workbook.Write(&out, d, f); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "report.xlsx")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, booktest.Read(t, out.Bytes())
}

// A file has one color in all charts of all formats, also where the first one is not shown.
func TestFilesKeepTheirColors(t *testing.T) {
	point := document.Point{Value: 1, Lo: 1, Hi: 1, Known: true}
	d := &document.Document{Charts: []document.Chart{{Name: "x", Shape: document.Dots, First: 1, Series: []string{"B"}, Items: []document.Item{{Label: "a", Points: []document.Point{point}}}}}}
	_, book := write(t, d, nil)
	if text := book.Parts["xl/charts/chart1.xml"]; !strings.Contains(text, document.Series[1].Light.Hex()) || strings.Contains(text, document.Series[0].Light.Hex()) {
		t.Errorf("the second file has another color than %s: %s", document.Series[1].Light.Hex(), text)
	}
}

func TestSheets(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload, record.Download)
	_, book := write(t, document.OfRanking(r, f, document.Options{}), f)
	want := []string{"summary", "ciphers and MACs", "ciphers and MACs 2", "key exchange", "controls", "matrix", "matrix 2", "charts", "algorithms", "environment", "raw"}
	var got []string
	for _, s := range book.Sheets {
		got = append(got, s.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("sheets %q, want %q", got, want)
	}
	raw := book.Sheet(t, "raw").Rows()
	if len(raw) != len(f.Samples)+1 {
		t.Errorf("%d rows of raw samples, want %d and the heads", len(raw), len(f.Samples))
	}
	if scales := book.Sheet(t, "matrix").Scales; len(scales) != 1 {
		t.Errorf("the matrix has no color scale: %v", scales)
	}
}

// Columns are as wide as what they hold, and rows of headings as high.
func TestNothingIsCut(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	long := alg.NewSuite("chacha20-poly1305@openssh.com", "hmac-sha2-512-etm@openssh.com", "")
	r.Controls = []rank.Control{{A: long, B: long}}
	limits := &compare.Ceilings{Suite: r.Bulk[0].Suite, Rows: []compare.Ceiling{{Name: "memory copy of one core", Limit: 1e10, Share: 10}}}
	_, book := write(t, document.OfRanking(r, f, document.Options{Ceilings: limits}), f)
	for _, name := range []string{"raw", "controls", "key exchange", "ceilings"} {
		sheet := book.Sheet(t, name)
		for i, row := range sheet.Rows()[1:] {
			for k, value := range row {
				_, err := strconv.ParseFloat(value, 64)
				if width := sheet.Width(k + 1); (err != nil || name == "raw") && width < float64(len(value)) {
					t.Errorf("%s: column %d of row %d is %.0f wide and holds %q", name, k+1, i+2, width, value)
				}
			}
		}
	}
	for name, least := range map[string]float64{"matrix": 30, "controls": 30, "ciphers and MACs": 30} {
		if height := book.Sheet(t, name).Height(1); height < least {
			t.Errorf("the headings of %s have %v points", name, height)
		}
	}
	if look := book.Look(book.Sheet(t, "raw").Cell("L2")); look.FormatID != 1 {
		t.Errorf("nanoseconds have format %+v, want integers", look)
	}
}

// A spreadsheet program of its own reads the workbook and gets the numbers.
func TestLibreOfficeReadsIt(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	path, _ := write(t, document.OfRanking(r, f, document.Options{}), f)
	rows := convert(t, path, "ciphers and MACs")
	throughput := slices.Index(rows[0], "throughput, MB/s")
	if throughput < 0 {
		t.Fatalf("no throughput in %q", rows[0])
	}
	if got, want := rows[1][2], r.Bulk[0].Suite.Cipher; got != want {
		t.Errorf("first cipher %q, want %q", got, want)
	}
	for i, c := range r.Bulk {
		got, err := strconv.ParseFloat(rows[i+1][throughput], 64)
		if want, _ := strconv.ParseFloat(unit.Digits(c.Throughput.Shown.Value/1e6), 64); err != nil || abs(got-want) > want*0.006 {
			t.Errorf("row %d: %q, want %v", i+1, rows[i+1][throughput], want)
		}
	}
}

// The error bars of a chart are the intervals of the report.
func TestErrorBars(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	d := document.OfRanking(r, f, document.Options{})
	_, book := write(t, d, f)
	rows := book.Sheet(t, "charts").Rows()
	ranking := d.Charts[slices.IndexFunc(d.Charts, func(c document.Chart) bool { return c.Name == "ranking" })]
	head := slices.IndexFunc(rows, func(row []string) bool { return len(row) > 0 && row[0] == ranking.Title+", "+ranking.Unit })
	if head < 0 {
		t.Fatalf("no data of %q", ranking.Title)
	}
	minus := slices.Index(rows[head], ranking.Series[0]+", 95 %: -")
	if minus < 0 {
		t.Fatalf("no error bars in %q", rows[head])
	}
	for i, item := range ranking.Items {
		p, row := item.Points[0], rows[head+1+i]
		for k, want := range map[int]float64{1: p.Value, minus: p.Value - p.Lo, minus + 1: p.Hi - p.Value} {
			if got, err := strconv.ParseFloat(row[k], 64); err != nil || abs(got-want) > 1e-6*p.Value {
				t.Errorf("%s: column %d is %v (%v), want %v", item.Label, k+1, got, err, want)
			}
		}
	}
}

func abs(v float64) float64 { return max(v, -v) }

// convert lets LibreOffice write every sheet as CSV, as it shows it, and returns one.
func convert(t *testing.T, path, name string) [][]string {
	t.Helper()
	dir := t.TempDir()
	home := url.URL{Scheme: "file", Path: filepath.Join(dir, "profile")}
	// Token 12 of the filter: -1 writes each sheet to a file of its own.
	cmd := exec.CommandContext(t.Context(), "soffice", "-env:UserInstallation="+home.String(), "--headless",
		"--convert-to", `csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1`, "--outdir", dir, path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("soffice: %v: %s", err, out)
	}
	file, err := os.Open(filepath.Join(dir, fmt.Sprintf("report-%s.csv", name)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestNothingIsAFormula(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	benchtest.Spoil(r)
	for i, payload := range benchtest.Payloads {
		f.Samples[i].Detail, f.Samples[i].Got.Cipher = payload, payload
	}
	path, book := write(t, document.OfRanking(r, f, document.Options{}), f)
	for _, s := range book.Sheets {
		for _, line := range s.Lines {
			for _, c := range line.Cells {
				if c.Formula != nil {
					t.Errorf("%s %s is the formula %q", s.Name, c.At, *c.Formula)
				}
				if strings.ContainsAny(c.Value(), "\x00\x1b\u2028\u202e") {
					t.Errorf("%s %s holds control characters: %q", s.Name, c.At, c.Value())
				}
			}
		}
	}
	// What opens it shows the text, not what the text would calculate.
	seen := false
	for _, row := range convert(t, path, "failed") {
		seen = seen || slices.Contains(row, "=1+2")
		if slices.Contains(row, "3") {
			t.Errorf("a text was calculated: %q", row)
		}
	}
	if !seen {
		t.Error("=1+2 is not there as text")
	}
}
