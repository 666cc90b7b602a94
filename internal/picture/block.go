package picture

import (
	"fmt"
	"strconv"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/chart"
)

const (
	titleRoom  = vg.Length(44) // title and two lines of note above a chart
	legendRoom = vg.Length(16)
	axisRoom   = vg.Length(30) // ticks and unit below a chart
	headRoom   = vg.Length(82) // slanted names above a heat map
	traceRoom  = vg.Length(190)
	heatRow    = vg.Length(16)
	labelSize  = vg.Length(8)
)

func decimal(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// drawn are the rows of a chart that fit.
func drawn(c chart.Chart) []chart.Item {
	if c.Shape == chart.Heat || c.Shape == chart.Trace {
		return c.Items
	}
	return c.Items[:min(len(c.Items), rowsAt)]
}

func rowHeight(c chart.Chart) vg.Length {
	if c.Shape == chart.Stack || len(c.Series) < 2 {
		return 14
	}
	return vg.Length(6 + 9*len(c.Series))
}

func blockHeight(c chart.Chart) vg.Length {
	total := titleRoom
	if len(c.Series) > 1 && c.Shape != chart.Heat {
		total += legendRoom
	}
	switch c.Shape {
	case chart.Heat:
		return total + headRoom + vg.Length(len(c.Items))*heatRow
	case chart.Trace:
		return total + traceRoom + axisRoom
	}
	return total + vg.Length(len(drawn(c)))*rowHeight(c) + axisRoom
}

// block draws one chart with its title from y downwards.
func (p pen) block(y vg.Length, c chart.Chart) {
	p.write(margin, y+6, 11, ink, left, c.Title)
	note := c.Note
	if rest := len(c.Items) - len(drawn(c)); rest > 0 {
		note = fmt.Sprintf("First %d of %d. %s", len(drawn(c)), len(c.Items), note)
	}
	p.paragraph(y+20, labelSize, note)
	y += titleRoom
	if len(c.Series) > 1 && c.Shape != chart.Heat {
		p.legend(y, c)
		y += legendRoom
	}
	switch c.Shape {
	case chart.Heat:
		p.heat(y, c)
	case chart.Trace:
		p.trace(y, c)
	default:
		p.rows(y, c)
	}
}

func (p pen) legend(y vg.Length, c chart.Chart) {
	x := margin
	for k, name := range c.Series {
		p.box(x, y+2, 9, 9, colourOf(c, k))
		p.write(x+13, y+6.5, labelSize, ink, left, name)
		x += 13 + p.widthOf(name, labelSize) + 14
	}
}
