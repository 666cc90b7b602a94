package picture

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"sshpace/internal/show/document"
)

// Colors of everything but figures.
var (
	white = color.NRGBA{255, 255, 255, 255}
	ink   = color.NRGBA{27, 31, 36, 255}
	soft  = color.NRGBA{89, 97, 107, 255}
	rule  = color.NRGBA{217, 221, 226, 255}
)

// opaque returns a color as it is drawn.
func opaque(c document.Color) color.NRGBA { return color.NRGBA{c[0], c[1], c[2], 255} }

// colorOf returns the color of a series of an item.
func colorOf(c document.Chart, item document.Item, k int) color.NRGBA {
	return opaque(c.Color(item, k))
}

// align is the alignment of a text at its point.
type align = text.XAlignment

const (
	left   = draw.XLeft
	center = draw.XCenter
	right  = draw.XRight
)

// pen draws with the origin in the upper left corner, y downwards.
type pen struct {
	canvas        draw.Canvas
	width, height vg.Length
	text          text.Plain
	charts        []document.Chart // of the picture: charts with one name share a scale
}

// face is the one font of the pictures. The vector packages know their fonts by such names.
var face = font.Font{Typeface: "Liberation", Variant: "Sans"}

// newPen returns a pen that measures texts; on gives it a canvas.
func newPen(charts []document.Chart) (pen, error) {
	parsed, err := parse()
	if err != nil {
		return pen{}, err
	}
	cache := font.NewCache(font.Collection{{Font: face, Face: parsed}})
	return pen{text: text.Plain{Fonts: cache}, charts: charts}, nil
}

// on returns the pen on a canvas, which becomes white.
func (p pen) on(c draw.Canvas) pen {
	p.canvas, p.width, p.height = c, c.Max.X-c.Min.X, c.Max.Y-c.Min.Y
	p.box(0, 0, p.width, p.height, white)
	return p
}

func (p pen) style(size vg.Length, ink color.Color, at align) draw.TextStyle {
	f := face
	f.Size = size
	return draw.TextStyle{Color: ink, Font: f, XAlign: at, YAlign: draw.YCenter, Handler: p.text}
}

// write draws a text whose middle is at height y.
func (p pen) write(x, y, size vg.Length, ink color.Color, at align, s string) {
	p.canvas.FillText(p.style(size, ink, at), vg.Point{X: x, Y: p.height - y}, s)
}

// slant writes upwards to the right from a point.
func (p pen) slant(x, y, size vg.Length, s string) {
	style := p.style(size, ink, left)
	style.Rotation = 0.7
	p.canvas.FillText(style, vg.Point{X: x, Y: p.height - y}, s)
}

func (p pen) widthOf(s string, size vg.Length) vg.Length {
	return p.style(size, ink, left).Width(s)
}

// panels returns the items of all charts that share a scale with c: the directions.
func (p pen) panels(c document.Chart) (items []document.Item) {
	for _, other := range p.charts {
		if other.Name == c.Name && other.Unit == c.Unit {
			items = append(items, other.Items...)
		}
	}
	return items
}

// fit cuts a text that is too wide.
func (p pen) fit(s string, size, room vg.Length) string {
	runes := []rune(s)
	for p.widthOf(s, size) > room && len(runes) > 1 {
		runes = runes[:len(runes)-1]
		s = string(runes) + "…"
	}
	return s
}

// widest returns the width of the widest of some texts.
func (p pen) widest(size vg.Length, texts []string) (room vg.Length) {
	for _, s := range texts {
		room = max(room, p.widthOf(s, size))
	}
	return room
}

// lines breaks a text into lines of whole words; one that is too wide stands alone. A percent sign
// stays with its number.
func (p pen) lines(s string, size, room vg.Length) (out []string) {
	line := ""
	for _, word := range strings.Split(strings.ReplaceAll(s, " %", "\t%"), " ") {
		longer := strings.TrimSpace(line + " " + strings.ReplaceAll(word, "\t", " "))
		if line != "" && p.widthOf(longer, size) > room {
			out, longer = append(out, line), strings.TrimSpace(longer[len(line):])
		}
		line = longer
	}
	return append(out, line)
}

// leading is the distance of lines of a paragraph, in sizes of its letters.
const leading = 1.4

// paragraph draws a text whose first line is at y, and returns the place of the next line.
func (p pen) paragraph(x, y, size, room vg.Length, ink color.Color, s string) vg.Length {
	for _, line := range p.lines(s, size, room) {
		p.write(x, y, size, ink, left, p.fit(line, size, room))
		y += leading * size
	}
	return y
}

func (p pen) box(x, y, w, h vg.Length, fill color.Color) {
	top, bottom := p.height-y, p.height-y-h
	p.canvas.FillPolygon(fill, []vg.Point{{X: x, Y: top}, {X: x + w, Y: top}, {X: x + w, Y: bottom}, {X: x, Y: bottom}})
}

func (p pen) line(x1, y1, x2, y2, thick vg.Length, ink color.Color, dashes ...vg.Length) {
	p.canvas.StrokeLine2(draw.LineStyle{Color: ink, Width: thick, Dashes: dashes}, x1, p.height-y1, x2, p.height-y2)
}

func (p pen) dot(x, y, r vg.Length, fill, edge color.Color) {
	at := vg.Point{X: x, Y: p.height - y}
	p.canvas.DrawGlyphNoClip(draw.GlyphStyle{Color: edge, Radius: r, Shape: draw.CircleGlyph{}}, at)
	p.canvas.DrawGlyphNoClip(draw.GlyphStyle{Color: fill, Radius: r - 1.2, Shape: draw.CircleGlyph{}}, at)
}
