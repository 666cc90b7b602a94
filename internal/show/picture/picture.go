// Package picture draws the charts of a report as SVG, PNG or PDF, one below the other on white,
// for documents and mails. The layout is ours; fonts, text widths and rasterizing are those of
// gonum/plot's vector graphics.
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

// All is the name of all charts together.
const All = "all"

// SVG draws the named charts one below the other, without anything else. Without a name it draws a
// slide with the answer, or all charts where the document has none.
func SVG(w io.Writer, d *document.Document, names ...string) error {
	s, err := sketchOf(d, names)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(s.width, s.height)
	s.paint(draw.New(canvas))
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

// PDF draws the charts as one page, of the size that SVG has.
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
	s.paint(draw.New(page))
	return page.write(w)
}

// PNG draws the same picture as SVG.
func PNG(w io.Writer, d *document.Document, names ...string) error {
	s, err := sketchOf(d, names)
	if err != nil {
		return err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(s.width, s.height), vgimg.UseDPI(s.resolution))
	s.paint(draw.New(canvas))
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// sketch is a drawing before it has a format.
type sketch struct {
	width, height vg.Length
	resolution    int // of a PNG, in dots per inch
	paint         func(draw.Canvas)
}

func sketchOf(d *document.Document, names []string) (sketch, error) {
	if charts := slideOf(d, names); charts != nil {
		p, err := newPen(charts)
		return sketch{slideWidth, slideHeight, 144, func(c draw.Canvas) { p.on(c).slide(d) }}, err
	}
	charts, err := choose(d, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == All }))
	if err != nil {
		return sketch{}, err
	}
	title, lead := d.Title, d.Lead
	if len(names) > 0 && !slices.Contains(names, All) {
		title, lead = "", nil // charts with a text of their own
	}
	p, err := newPen(charts)
	if err != nil {
		return sketch{}, err
	}
	p.width = p.sheetWidth()
	return sketch{p.width, p.sheetHeight(title, lead), 216, func(c draw.Canvas) { p.on(c).sheet(title, lead) }}, nil
}

// choose finds the charts by name. An unknown name is an error, and so is a document without
// charts.
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
		return nil, errors.New("there is nothing to draw: no cell and no key exchange was measured, or none that the policy allows")
	}
	return out, nil
}

// A sheet of charts is as wide as a column of a page, so that its letters can be read there and on
// a screen of 400 pixels. Lengths are points of 1/72 inch.
const (
	sheetWidth = vg.Length(480)
	margin     = vg.Length(14)
	sheetTitle = vg.Length(16)
	gap        = vg.Length(20) // between charts
)

// sheetWidth is the width of a sheet, larger where a heat map has many columns.
func (p pen) sheetWidth() vg.Length {
	wide := sheetWidth
	for _, c := range p.charts {
		if c.Shape == document.Heat {
			wide = max(wide, p.heatWidth(c))
		}
	}
	return wide
}

func (p pen) sheetHeight(title string, lead []string) vg.Length {
	total := p.leadHeight(title, lead) + 2*margin - gap
	for _, c := range p.charts {
		total += p.blockHeight(c) + gap
	}
	return total
}

// leadHeight is the room above the charts.
func (p pen) leadHeight(title string, lead []string) (total vg.Length) {
	if title == "" {
		return 0
	}
	for _, words := range lead {
		total += p.paragraphHeight(words, noteSize)
	}
	return total + 2*leading*sheetTitle
}

// paragraphHeight is the room that a paragraph takes on a sheet.
func (p pen) paragraphHeight(s string, size vg.Length) vg.Length {
	return leading * size * vg.Length(len(p.lines(s, size, p.width-2*margin)))
}

// sheet draws everything from the top.
func (p pen) sheet(title string, lead []string) {
	p.write(margin, margin+sheetTitle/2, sheetTitle, ink, left, p.fit(title, sheetTitle, p.width-2*margin))
	y := margin + leading*sheetTitle + noteSize/2
	for _, words := range lead {
		y = p.paragraph(margin, y, noteSize, p.width-2*margin, ink, words)
	}
	y = margin + p.leadHeight(title, lead)
	for _, one := range p.charts {
		p.block(y, one)
		y += p.blockHeight(one) + gap
	}
}
