package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/picture"
)

// texts reads the texts of an SVG, and fails where it is not well-formed or holds an element that a
// drawing does not need.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	var out []string
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			switch token.Name.Local {
			case "svg", "g", "path", "defs", "use", "title":
			default:
				t.Errorf("element %s in a drawing", token.Name.Local)
			}
			for _, a := range token.Attr {
				if a.Name.Local == "aria-label" {
					out = append(out, a.Value)
				}
				if strings.Contains(a.Value, "font") {
					t.Errorf("%s: a drawing that needs a font", a.Value)
				}
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(token)); s != "" {
				out = append(out, s)
			}
		}
	}
}

func svg(t *testing.T, d *document.Document, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := picture.SVG(&out, d, names...); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestTheFiguresAreInThePicture(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	all := strings.Join(texts(t, svg(t, document.OfRanking(r, f, document.Options{}), picture.All)), "\n")
	for _, c := range r.Bulk {
		if figure := unit.Digits(c.Throughput.Shown.Value / 1e6); !strings.Contains(all, figure) {
			t.Errorf("%s: %s is not in the picture", c.Suite, figure)
		}
	}
	for _, want := range []string{"aes128-gcm", "post-quantum", "MB/s"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
}

// A chart is named with as many rows as it was cut to, and its note says so. What a point is drawn
// as is explained where there is such a point, and units are in words.
func TestCaptions(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	r.By = rank.Cost
	draw := func(names ...string) string {
		return strings.Join(texts(t, svg(t, document.OfRanking(r, f, document.Options{}).Head(12), names...)), "\n")
	}
	head := draw("ranking")
	for _, want := range []string{"First 12 of ", "seconds of CPU time per GB"} {
		if !strings.Contains(head, want) {
			t.Errorf("no %q:\n%s", want, head)
		}
	}
	if strings.Contains(head, "Hollow") {
		t.Errorf("nothing is hollow:\n%s", head)
	}
	if slide := draw(); !strings.Contains(slide, "\nMB per second of CPU time\n") {
		t.Errorf("no axis:\n%s", slide)
	}
	for i := range r.Bulk {
		r.Bulk[i].Basis = rank.Predicted
	}
	if head := draw("ranking"); !strings.Contains(head, "Hollow: predicted.") {
		t.Errorf("hollow, and nothing says why:\n%s", head)
	}
}

// A line never begins with the unit of a number.
func TestPercentStaysWithItsNumber(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	d := document.OfRanking(r, f, document.Options{})
	for i := range 80 {
		d.Lead = append(d.Lead, strings.Repeat("i", i)+strings.Repeat(" 43 %", 40))
	}
	for _, line := range texts(t, svg(t, d, picture.All)) {
		if strings.HasPrefix(line, "%") {
			t.Fatalf("%q", line)
		}
	}
}

// A legend has as many lines as its names need, all within the picture.
func TestLegendFits(t *testing.T) {
	c := document.Chart{Name: "x", Title: "x", Shape: document.Curve, Across: "ms", Unit: "MB/s"}
	for i := range 9 {
		name := strings.Repeat("long name ", 2) + strings.Repeat("i", i)
		c.Series = append(c.Series, name)
		c.Items = append(c.Items, document.Item{Label: name, X: []float64{1, 2}, Points: []document.Point{{Value: 1, Lo: 1, Hi: 1, Known: true}, {Value: 2, Lo: 2, Hi: 2, Known: true}}})
	}
	drawing := string(svg(t, &document.Document{Charts: []document.Chart{c}}, "x"))
	for _, found := range regexp.MustCompile(`aria-label="(long name [^"]*)" transform="scale\(1, -1\) translate\(([0-9.]+) `).FindAllStringSubmatch(drawing, -1) {
		if x, err := strconv.ParseFloat(found[2], 64); err != nil || x > 400 {
			t.Errorf("%q begins at %s of 480", found[1], found[2])
		}
	}
	if n := strings.Count(drawing, `aria-label="long name `); n != 9 {
		t.Errorf("%d names of 9", n)
	}
}

func TestOneChart(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	d := document.OfRanking(r, f, document.Options{})
	if all := strings.Join(texts(t, svg(t, d, "kex")), "\n"); strings.Contains(all, "aes256-ctr + ") || !strings.Contains(all, "curve25519") {
		t.Errorf("not the key exchanges alone:\n%s", all)
	}
	err := picture.SVG(io.Discard, d, "kexx")
	if err == nil || !strings.Contains(err.Error(), "answer, ranking, heat, cost, kex") {
		t.Errorf("an unknown chart gives %v", err)
	}
	if err := picture.PNG(io.Discard, &document.Document{}); err == nil {
		t.Error("a document without charts can be drawn")
	}
}

// Without a name the picture is a slide: 16:9, with the answer and at most eight rows, one of which
// is what is used now.
func TestSlide(t *testing.T) {
	for _, directions := range [][]record.Direction{{record.Upload}, {record.Upload, record.Download}} {
		r, f := benchtest.Ranking(t, 1, directions...)
		r.Campaign.Present = alg.Suite{Cipher: "aes256-ctr", MAC: "hmac-sha2-256-etm@openssh.com"} // the slowest
		d := document.OfRanking(r, f, document.Options{})
		drawing := svg(t, d)
		all := strings.Join(texts(t, drawing), "\n")
		for _, want := range []string{"is faster here than", "aes128-gcm", "(now)"} {
			if !strings.Contains(all, want) {
				t.Errorf("%q is not on the slide:\n%s", want, all)
			}
		}
		blue, orange := strings.Count(string(drawing), "fill:#0072B2"), strings.Count(string(drawing), "fill:#D55E00")
		if blue > 7*len(directions) || blue == 0 || orange != len(directions) {
			t.Errorf("%d bars, %d of them of what is used now", blue+orange, orange)
		}
		var out bytes.Buffer
		if err := picture.PNG(&out, d); err != nil {
			t.Fatal(err)
		}
		if decoded, err := png.DecodeConfig(&out); err != nil || decoded.Width != 1920 || decoded.Height != 1080 {
			t.Errorf("%d x %d, %v", decoded.Width, decoded.Height, err)
		}
	}
}

// Post-quantum key exchanges have a color, and a legend says which.
func TestPostQuantumIsMarked(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	r.KexBy = rank.Throughput // bars of one color: the login time
	drawing := svg(t, document.OfRanking(r, f, document.Options{}), "kex")
	all := strings.Join(texts(t, drawing), "\n")
	quantum := 0
	for _, k := range r.Kex {
		if k.PostQuantum {
			quantum++
		}
	}
	// The green #007A59: a box in the legend, and one for each bar.
	if boxes := strings.Count(string(drawing), "fill:#007A59"); boxes != quantum+1 || !strings.Contains(all, "\npost-quantum\n") {
		t.Errorf("%d green boxes for %d post-quantum key exchanges, and these texts:\n%s", boxes, quantum, all)
	}
	for i := range r.Kex {
		r.Kex[i].PostQuantum = false
	}
	if all := strings.Join(texts(t, svg(t, document.OfRanking(r, f, document.Options{}), "kex")), "\n"); strings.Contains(all, "classical") {
		t.Errorf("a legend without need:\n%s", all)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	d := document.OfRanking(r, f, document.Options{})
	if !bytes.Equal(svg(t, d), svg(t, d)) {
		t.Error("two drawings of one document differ")
	}
}

func TestPNGOfAComparison(t *testing.T) {
	a, _ := benchtest.Ranking(t, 1, record.Upload)
	b, _ := benchtest.Ranking(t, 1.5, record.Upload)
	c, err := compare.Of([]compare.Input{{Label: "a", Ranking: a}, {Label: "b", Ranking: b}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := picture.PNG(&out, document.OfComparison(c, document.Options{All: true})); err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	colors := map[any]bool{}
	for y := 0; y < decoded.Bounds().Dy(); y += 3 {
		for x := 0; x < decoded.Bounds().Dx(); x += 3 {
			colors[decoded.At(x, y)] = true
		}
	}
	if decoded.Bounds().Dx() != 1440 || len(colors) < 20 {
		t.Errorf("%v with %d colors: not a drawing", decoded.Bounds(), len(colors))
	}
}

func TestHostileText(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	benchtest.Spoil(r)
	all := strings.Join(texts(t, svg(t, document.OfRanking(r, f, document.Options{}), picture.All)), "\n")
	if strings.ContainsAny(all, "\x1b\u2028\u202e\x00") {
		t.Error("control characters in the picture")
	}
	if !strings.Contains(all, "<script>window.hacked=1") {
		t.Error("the hostile name is not shown as text")
	}
}
