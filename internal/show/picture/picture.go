// Package picture draws the charts of a report as SVG, PNG or PDF, one below the
// other on white, for documents and mails. The layout is ours; fonts, text widths
// and rasterising are those of gonum/plot's vector graphics.
package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"sshpace/internal/show/document"
)

// resolution of a PNG in dots per inch: 1,480 pixels in width.
const resolution = 144

// All is the name of all charts together.
const All = "all"

// SVG draws the named charts one below the other, without anything else. Without a name
// it draws a slide with the answer, or all charts where the document has none.
func SVG(w io.Writer, d *document.Document, names ...string) error {
	s, err := sketchOf(d, names)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(s.width, s.height)
	if err := s.paint(draw.New(canvas)); err != nil {
		return err
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return err
	}
	drawing, err := outlined(out.Bytes())
	if err != nil {
		return err
	}
	var title bytes.Buffer
	_ = xml.EscapeText(&title, []byte(d.Title)) // a Buffer does not fail
	_, err = w.Write(bytes.Replace(drawing, []byte("<defs>"), []byte("<title>"+title.String()+"</title>\n<defs>"), 1))
	return err
}

// PDF draws the same as one page of that size.
func PDF(w io.Writer, d *document.Document, names ...string) error {
	s, err := sketchOf(d, names)
	if err != nil {
		return err
	}
	font, err := parse()
	if err != nil {
		return err
	}
	page := newPage(s.width, s.height, font)
	if err := s.paint(draw.New(page)); err != nil {
		return err
	}
	return page.write(w)
}

// PNG draws the same as SVG.
func PNG(w io.Writer, d *document.Document, names ...string) error {
	s, err := sketchOf(d, names)
	if err != nil {
		return err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(s.width, s.height), vgimg.UseDPI(resolution))
	if err := s.paint(draw.New(canvas)); err != nil {
		return err
	}
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// sketch is a drawing before it has a format.
type sketch struct {
	width, height vg.Length
	paint         func(draw.Canvas) error
}

func sketchOf(d *document.Document, names []string) (sketch, error) {
	if charts := slideOf(d, names); charts != nil {
		return sketch{slideWidth, slideHeight, func(c draw.Canvas) error { return slide(c, d, charts) }}, nil
	}
	charts, err := choose(d, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == All }))
	if err != nil {
		return sketch{}, err
	}
	title, lead := d.Title, d.Lead
	if len(names) > 0 && !slices.Contains(names, All) {
		title, lead = "", nil // charts that go into a text of its own
	}
	return sketch{width, heightOf(title, lead, charts), func(c draw.Canvas) error { return paint(c, title, lead, charts) }}, nil
}

// choose finds the charts by name. A name that is not there is an error, and so
// is a document without charts.
func choose(d *document.Document, names []string) ([]document.Chart, error) {
	have := d.ChartNames()
	for _, name := range names {
		if !slices.Contains(have, name) {
			return nil, document.NoSuch("chart", name, have)
		}
	}
	var out []document.Chart
	for _, c := range d.Charts {
		if len(names) == 0 || slices.Contains(names, c.Name) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is nothing to draw: no cell and no key exchange was measured")
	}
	return out, nil
}

const (
	width  = vg.Length(740) // points of 1/72 inch
	margin = vg.Length(16)
	head   = vg.Length(34) // title
	line   = vg.Length(13)
	gap    = vg.Length(26)
	rowsAt = 40 // rows of a chart that are drawn at most; heat maps are drawn whole
)

func heightOf(title string, lead []string, charts []document.Chart) vg.Length {
	total := headOf(title, lead) + 2*margin
	for _, c := range charts {
		total += blockHeight(c) + gap
	}
	return total
}

// headOf is the room above the charts.
func headOf(title string, lead []string) vg.Length {
	if title == "" {
		return 0
	}
	return head + vg.Length(len(lead)+1)*line
}

// paint draws everything from the top.
func paint(c draw.Canvas, title string, lead []string, charts []document.Chart) error {
	p, err := newPen(c, charts)
	if err != nil {
		return err
	}
	p.box(0, 0, width, p.height, white)
	p.write(margin, margin+14, 16, ink, left, title)
	for i, words := range lead {
		p.write(margin, margin+head+vg.Length(i)*line, 9, ink, left, p.fit(words, 9, width-2*margin))
	}
	y := margin + headOf(title, lead)
	for _, one := range charts {
		p.block(y, one)
		y += blockHeight(one) + gap
	}
	return nil
}
