package picture

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/show/document"
)

const (
	titleRoom  = vg.Length(44) // title and two lines of note above a chart
	legendRoom = vg.Length(16)
	axisRoom   = vg.Length(30) // ticks and unit below a chart
	headRoom   = vg.Length(82) // slanted names above a heat map
	heatRow    = vg.Length(16)
	labelSize  = vg.Length(8)
)

// drawn are the rows of a chart that fit.
func drawn(c document.Chart) []document.Item {
	if c.Shape == document.Heat || c.Shape == document.Curve {
		return c.Items
	}
	return c.Items[:min(len(c.Items), rowsAt)]
}

func rowHeight(c document.Chart) vg.Length {
	if c.Shape == document.Stack || len(c.Series) < 2 {
		return 14
	}
	return vg.Length(6 + 9*len(c.Series))
}

func blockHeight(c document.Chart) vg.Length {
	total := titleRoom
	if len(legendOf(c)) > 0 {
		total += legendRoom
	}
	switch c.Shape {
	case document.Heat:
		return total + headRoom + vg.Length(len(c.Items))*heatRow
	case document.Curve:
		return total + curveRoom + axisRoom
	}
	return total + vg.Length(len(drawn(c)))*rowHeight(c) + axisRoom
}

// block draws one chart with its title from y downwards.
func (p pen) block(y vg.Length, c document.Chart) {
	p.write(margin, y+6, 11, ink, left, c.Title)
	note := c.Note
	if rest := len(c.Items) - len(drawn(c)); rest > 0 {
		note = fmt.Sprintf("First %d of %d. %s", len(drawn(c)), len(c.Items), note)
	}
	p.paragraph(margin, y+20, labelSize, width-2*margin, note)
	y += titleRoom
	if len(legendOf(c)) > 0 {
		p.legend(y, c)
		y += legendRoom
	}
	switch c.Shape {
	case document.Heat:
		p.heat(y, c)
	case document.Curve:
		p.curve(y, c)
	default:
		p.rows(y, c)
	}
}

// entry is a colour with its meaning.
type entry struct {
	name   string
	colour color.NRGBA
}

// legendOf says what the colours of a chart mean; nothing where there is only one.
// A heat map has its strip instead.
func legendOf(c document.Chart) []entry {
	switch {
	case marksQuantum(c):
		return []entry{{"classical", colourOf(c, document.Item{}, 0)}, {"post-quantum", colourOf(c, document.Item{Color: document.ColorQuantum}, 0)}}
	case len(c.Series) < 2 || c.Shape == document.Heat:
		return nil
	}
	var out []entry
	for k, name := range c.Series {
		out = append(out, entry{name, itemColour(c, k)})
	}
	return out
}

// marksQuantum reports whether bars of post-quantum key exchanges have a colour
// of their own: where colours do not already tell series apart.
func marksQuantum(c document.Chart) bool {
	return c.Shape == document.Bars && len(c.Series) == 1 && slices.ContainsFunc(c.Items, func(i document.Item) bool { return i.Color == document.ColorQuantum })
}

func (p pen) legend(y vg.Length, c document.Chart) {
	x := margin
	for _, e := range legendOf(c) {
		p.box(x, y+2, 9, 9, e.colour)
		p.write(x+13, y+6.5, labelSize, ink, left, e.name)
		x += 13 + p.widthOf(e.name, labelSize) + 14
	}
}
