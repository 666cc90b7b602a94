package picture

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"

	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// page is a drawing as one page of PDF 1.4 (ISO 32000-1): paths only, so that it needs no fonts.
// Gonum's PDF embeds all letters of a font by way of temporary files, and writes the time.
type page struct {
	width, height vg.Length
	letters       *outlines
	body          bytes.Buffer
}

var _ vg.Canvas = (*page)(nil)

func newPage(w, h vg.Length, f *sfnt.Font) *page {
	p := &page{width: w, height: h, letters: newOutlines(f)}
	vg.Initialize(p)
	return p
}

func (p *page) op(format string, args ...any) { fmt.Fprintf(&p.body, format+"\n", args...) }

// Size returns the size of the page.
func (p *page) Size() (w, h vg.Length) { return p.width, p.height }

// SetLineWidth sets the width of the following lines.
func (p *page) SetLineWidth(w vg.Length) { p.op("%.4g w", w.Points()) }

// SetLineDash sets the dashes of the following lines.
func (p *page) SetLineDash(dashes []vg.Length, offset vg.Length) {
	p.body.WriteString("[")
	for _, d := range dashes {
		fmt.Fprintf(&p.body, "%.4g ", d.Points())
	}
	p.op("] %.4g d", offset.Points())
}

// SetColor sets the color of lines and areas. All colors of the pictures are opaque.
func (p *page) SetColor(c color.Color) {
	r, g, b, _ := c.RGBA()
	share := func(v uint32) float64 { return float64(v) / math.MaxUint16 }
	p.op("%s rg %[1]s RG", fmt.Sprintf("%.4g %.4g %.4g", share(r), share(g), share(b)))
}

func (p *page) matrix(a, b, c, d, e, f float64) {
	p.op("%.6g %.6g %.6g %.6g %.6g %.6g cm", a, b, c, d, e, f)
}

// Rotate turns the following drawing counterclockwise.
func (p *page) Rotate(angle float64) {
	sin, cos := math.Sincos(angle)
	p.matrix(cos, sin, -sin, cos, 0, 0)
}

// Translate moves the following drawing.
func (p *page) Translate(by vg.Point) { p.matrix(1, 0, 0, 1, by.X.Points(), by.Y.Points()) }

// Scale enlarges the following drawing.
func (p *page) Scale(x, y float64) { p.matrix(x, 0, 0, y, 0, 0) }

// Push saves the state that Pop restores.
func (p *page) Push() { p.op("q") }

// Pop restores the state of the last Push.
func (p *page) Pop() { p.op("Q") }

// Stroke draws lines.
func (p *page) Stroke(path vg.Path) {
	p.path(path)
	p.op("S")
}

// Fill draws areas.
func (p *page) Fill(path vg.Path) {
	p.path(path)
	p.op("f")
}

func (p *page) path(path vg.Path) {
	at := func(pt vg.Point) string { return fmt.Sprintf("%.6g %.6g", pt.X.Points(), pt.Y.Points()) }
	for i, c := range path {
		switch {
		case c.Type == vg.MoveComp:
			p.op("%s m", at(c.Pos))
		case c.Type == vg.LineComp:
			p.op("%s l", at(c.Pos))
		case c.Type == vg.ArcComp:
			p.arc(c, i == 0)
		case c.Type == vg.CurveComp && len(c.Control) == 2:
			p.op("%s %s %s c", at(c.Control[0]), at(c.Control[1]), at(c.Pos))
		case c.Type == vg.CloseComp:
			p.op("h")
		}
	}
}

// arc draws an arc as Bézier curves of an eighth of a circle each, which are off by less than
// 1/100,000 of its radius.
func (p *page) arc(c vg.PathComp, first bool) {
	n := math.Max(1, math.Ceil(math.Abs(c.Angle)/(math.Pi/4)))
	step := c.Angle / n
	reach := 4.0 / 3 * math.Tan(step/4)
	x, y, r := c.Pos.X.Points(), c.Pos.Y.Points(), c.Radius.Points()
	sin, cos := math.Sincos(c.Start)
	start := "l"
	if first {
		start = "m"
	}
	p.op("%.6g %.6g %s", x+r*cos, y+r*sin, start)
	for i := 1.0; i <= n; i++ {
		nextSin, nextCos := math.Sincos(c.Start + i*step)
		p.op("%.6g %.6g %.6g %.6g %.6g %.6g c", x+r*(cos-reach*sin), y+r*(sin+reach*cos),
			x+r*(nextCos+reach*nextSin), y+r*(nextSin-reach*nextCos), x+r*nextCos, y+r*nextSin)
		sin, cos = nextSin, nextCos
	}
}

// FillString draws a text as outlines.
func (p *page) FillString(f font.Face, at vg.Point, text string) {
	scale := f.Font.Size.Points() / float64(p.letters.font.UnitsPerEm())
	for _, g := range p.letters.glyphs(text) {
		segments := p.letters.segments(g.index)
		if len(segments) == 0 {
			continue
		}
		p.Push()
		p.matrix(scale, 0, 0, -scale, at.X.Points()+scale*float64(g.x), at.Y.Points())
		p.letter(segments)
		p.op("f")
		p.Pop()
	}
}

// letter draws an outline. PDF has no quadratic curves: they are converted to cubic ones.
func (p *page) letter(segments sfnt.Segments) {
	var x, y float64
	for _, s := range segments {
		var a [6]float64
		for i, pt := range s.Args[:arguments(s.Op)] {
			a[2*i], a[2*i+1] = float64(pt.X.Round()), float64(pt.Y.Round())
		}
		end := 2*arguments(s.Op) - 2
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			p.op("%g %g m", a[0], a[1])
		case sfnt.SegmentOpLineTo:
			p.op("%g %g l", a[0], a[1])
		case sfnt.SegmentOpQuadTo:
			p.op("%.0f %.0f %.0f %.0f %g %g c", (x+2*a[0])/3, (y+2*a[1])/3, (2*a[0]+a[2])/3, (2*a[1]+a[3])/3, a[2], a[3])
		case sfnt.SegmentOpCubeTo:
			p.op("%g %g %g %g %g %g c", a[0], a[1], a[2], a[3], a[4], a[5])
		}
		x, y = a[end], a[end+1]
	}
}

// DrawImage is never called: the pictures are lines, areas and texts.
func (p *page) DrawImage(vg.Rectangle, image.Image) {}

// write writes the file: a catalog, a list of one page, the page, and its content.
func (p *page) write(w io.Writer) error {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(p.body.Bytes()) // a Buffer does not fail
	if err := z.Close(); err != nil {
		return err
	}
	objects := []string{
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 %.6g %.6g]/Resources<<>>/Contents 4 0 R>>", p.width.Points(), p.height.Points()),
		fmt.Sprintf("<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream", packed.Len(), packed.Bytes()),
	}
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	var places []int
	for i, o := range objects {
		places = append(places, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range places {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	_, err := w.Write(out.Bytes())
	return err
}
