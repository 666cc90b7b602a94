package picture

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/show/document"
)

const (
	titleSize  = vg.Length(13)
	labelSize  = vg.Length(11)
	noteSize   = vg.Length(10)
	legendLine = vg.Length(18)
	headRoom   = vg.Length(92) // slanted names above a heat map
	heatRow    = vg.Length(20)
)

// axisRoom is the room for ticks and unit below a chart with letters of a size.
func axisRoom(size vg.Length) vg.Length { return 3 * size }

func rowHeight(c document.Chart) vg.Length {
	if c.Shape == document.Stack || len(c.Series) < 2 {
		return 18
	}
	return vg.Length(6 + 13*len(c.Series))
}

// aboveHeight is the room for title, note and legend above a chart.
func (p pen) aboveHeight(c document.Chart) vg.Length {
	return leading*titleSize + p.paragraphHeight(c.Caption(), noteSize) + 6 + p.legendHeight(c)
}

func (p pen) legendHeight(c document.Chart) vg.Length {
	return legendLine * vg.Length(len(p.legendLines(c)))
}

func (p pen) blockHeight(c document.Chart) vg.Length {
	switch total := p.aboveHeight(c); c.Shape {
	case document.Heat:
		return total + headRoom + vg.Length(len(c.Items))*heatRow
	case document.Curve:
		return total + curveRoom + axisRoom(labelSize)
	default:
		return total + vg.Length(len(c.Items))*rowHeight(c) + axisRoom(labelSize)
	}
}

// block draws one chart with its title from y downwards.
func (p pen) block(y vg.Length, c document.Chart) {
	room := p.width - 2*margin
	p.write(margin, y+titleSize/2, titleSize, ink, left, p.fit(c.Title, titleSize, room))
	p.paragraph(margin, y+leading*titleSize+noteSize/2, noteSize, room, soft, c.Caption())
	y += p.aboveHeight(c)
	p.legend(y-p.legendHeight(c), c)
	switch c.Shape {
	case document.Heat:
		p.heat(y, c)
	case document.Curve:
		p.curve(y, c)
	default:
		p.rows(plot{margin, y, room, rowHeight(c), labelSize}, c)
	}
}

// entry is a color with its meaning.
type entry struct {
	name  string
	shade color.NRGBA
}

// legendOf explains the colors of a chart; nothing where there is only one. A heat map has its
// strip instead.
func legendOf(c document.Chart) []entry {
	switch {
	case marksQuantum(c):
		return []entry{{"classical", colorOf(c, document.Item{}, 0)}, {"post-quantum", colorOf(c, document.Item{Color: document.ColorQuantum}, 0)}}
	case len(c.Series) < 2 || c.Shape == document.Heat:
		return nil
	}
	var out []entry
	for k, name := range c.Series {
		out = append(out, entry{name, itemColor(c, k)})
	}
	return out
}

// marksQuantum reports whether bars of post-quantum key exchanges have their own color: where
// colors do not already distinguish series.
func marksQuantum(c document.Chart) bool {
	return c.Shape == document.Bars && len(c.Series) == 1 && slices.ContainsFunc(c.Items, func(i document.Item) bool { return i.Color == document.ColorQuantum })
}

// legendLines breaks the entries of a legend into lines that fit.
func (p pen) legendLines(c document.Chart) (lines [][]entry) {
	end := vg.Length(0)
	for _, e := range legendOf(c) {
		if end += p.entryWidth(e); len(lines) == 0 || end > p.width-2*margin {
			lines, end = append(lines, nil), p.entryWidth(e)
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], e)
	}
	return lines
}

// entryWidth is the width of a legend's entry with the gap after it.
func (p pen) entryWidth(e entry) vg.Length { return p.widthOf(e.name, labelSize) + 3*labelSize }

func (p pen) legend(y vg.Length, c document.Chart) {
	for _, line := range p.legendLines(c) {
		x := margin
		for _, e := range line {
			p.box(x, y+1, labelSize, labelSize, e.shade)
			p.write(x+1.5*labelSize, y+1+labelSize/2, labelSize, ink, left, p.fit(e.name, labelSize, p.width-x-3*labelSize))
			x += p.entryWidth(e)
		}
		y += legendLine
	}
}
