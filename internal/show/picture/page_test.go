package picture_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sshpace/internal/bench/benchtest"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/picture"
)

// A PDF is one page of paths, which needs no fonts, with its objects where its table says. The same
// input gives the same bytes.
func TestPDF(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	d := document.OfRanking(r, f, document.Options{})
	pdf := func() []byte {
		var out bytes.Buffer
		if err := picture.PDF(&out, d, "ranking"); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	file := pdf()
	if !bytes.Equal(file, pdf()) {
		t.Error("two drawings of one document differ")
	}
	for i, place := range regexp.MustCompile(`(\d{10}) 00000 n`).FindAllSubmatch(file, -1) {
		at, _ := strconv.Atoi(string(place[1]))
		if want := fmt.Sprintf("%d 0 obj", i+1); !bytes.HasPrefix(file[at:], []byte(want)) {
			t.Errorf("no %s at %d", want, at)
		}
	}
	_, stream, _ := bytes.Cut(file, []byte("stream\n"))
	z, err := zlib.NewReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(file, []byte("/Font")) || bytes.Contains(content, []byte("%!")) {
		t.Error("fonts, or operands that are none")
	}
	saved := 0
	for line := range strings.Lines(string(content)) {
		switch strings.TrimSpace(line) {
		case "q":
			saved++
		case "Q":
			saved--
		}
	}
	// 40 dots with their edges, of #0072B2 as 0 to 1.
	if curves := bytes.Count(content, []byte(" c\n")); curves < 40 || saved < 0 || !bytes.Contains(content, []byte("0 0.4471 0.698 rg 0 0.4471 0.698 RG")) {
		t.Errorf("%d curves, %d more q than Q", curves, saved)
	}
}

// Charts that are asked for by name go into papers: nothing stands above them.
func TestChartsAlone(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	d := document.OfRanking(r, f, document.Options{})
	alone, all := texts(t, svg(t, d, "ranking", "kex")), texts(t, svg(t, d, picture.All))
	for _, said := range [][]string{alone[1:], all} { // the first is the title, for screen readers
		for _, s := range said {
			if s == d.Title && len(said) < len(all) || strings.Contains(s, "than what ssh uses now") || strings.HasPrefix(s, "Ciphers ^") {
				t.Errorf("%q above a chart", s)
			}
		}
	}
}

// The panels of one chart share a scale, so that bars can be compared by their length.
func TestPanelsShareAScale(t *testing.T) {
	panel := func(title string, v float64) document.Chart {
		return document.Chart{Name: "x", Title: title, Shape: document.Dots, Unit: "MB/s", Series: []string{"speed"}, Items: []document.Item{
			{Label: title, Points: []document.Point{{Value: v, Lo: v, Hi: v, Known: true}}},
		}}
	}
	d := &document.Document{Charts: []document.Chart{panel("slow", 12), panel("fast", 97)}}
	found := strings.Join(texts(t, svg(t, d, "x")), "\n") + "\n"
	if n := strings.Count(found, "\n80\n"); n != 2 {
		t.Errorf("80 MB/s is marked on %d of two panels:\n%s", n, found)
	}
}
