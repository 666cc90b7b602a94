package picture

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/base/unit"
	"sshpace/internal/show/document"
)

// scale gives values their colors.
type scale struct {
	low, high float64
	colors    document.Scale
	falling   bool // see document.Chart.Scale
}

func (p pen) scaleOf(c document.Chart) scale {
	low, high := extent(document.Heat, p.panels(c))
	if c.Reference != 0 {
		arm := math.Max(0.02, math.Max(high/c.Reference, c.Reference/low)-1)
		low, high = c.Reference-arm, c.Reference+arm
	}
	colors, falling := c.Scale()
	return scale{low, high, colors, falling}
}

// shade returns the color of a value.
func (s scale) shade(v float64) color.NRGBA {
	low, high := s.low, s.high
	if s.falling {
		v, low, high = 1/v, 1/high, 1/low
	}
	if !(high > low) {
		return s.at(0.5)
	}
	return s.at(math.Max(0, math.Min(1, (v-low)/(high-low))))
}

// at returns the color at a share of the scale, from 0 to 1.
func (s scale) at(t float64) color.NRGBA {
	at := t * float64(len(s.colors)-1)
	i := min(int(at), len(s.colors)-2)
	a, b, f := s.colors[i], s.colors[i+1], at-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + (float64(y)-float64(x))*f)) }
	return opaque(document.Color{mix(a[0], b[0]), mix(a[1], b[1]), mix(a[2], b[2])})
}

// inkOn returns a text color that can be read on another one.
func inkOn(c color.NRGBA) color.NRGBA {
	if 0.299*float64(c.R)+0.587*float64(c.G)+0.114*float64(c.B) > 140 {
		return ink
	}
	return white
}

const (
	heatCell  = vg.Length(38) // the least width of a cell that its figure can be read in
	heatAside = vg.Length(70) // right of the cells, for the end of the last slanted name
)

// heatWidth is the width that a heat map needs.
func (p pen) heatWidth(c document.Chart) vg.Length {
	return margin + p.labelRoom(c, labelSize) + 8 + vg.Length(len(c.Series))*heatCell + heatAside
}

// heat draws the matrix with its names above and its figures inside.
func (p pen) heat(y vg.Length, c document.Chart) {
	s := p.scaleOf(c)
	start := margin + p.labelRoom(c, labelSize) + 8
	each := min((p.width-heatAside-start)/vg.Length(max(1, len(c.Series))), 80)
	p.strip(y, c, s)
	y += headRoom
	for k, name := range c.Series {
		p.slant(start+(vg.Length(k)+0.4)*each, y-5, labelSize, p.fit(name, labelSize, 106))
	}
	for i, item := range c.Items {
		top := y + vg.Length(i)*heatRow
		p.write(start-6, top+heatRow/2, labelSize, ink, right, item.Label+item.Aside())
		for k, point := range item.Points {
			if !point.Known {
				continue
			}
			fill := s.shade(point.Value)
			p.box(start+vg.Length(k)*each, top, each-1, heatRow-1, fill)
			p.write(start+(vg.Length(k)+0.5)*each, top+heatRow/2, noteSize, inkOn(fill), center, heatText(point))
		}
	}
}

func heatText(point document.Point) string {
	if point.Predicted {
		return "~" + unit.Digits(point.Value)
	}
	return unit.Digits(point.Value)
}

// strip draws the legend of the colors.
func (p pen) strip(y vg.Length, c document.Chart, s scale) {
	const steps = 40
	worst, best := s.low, s.high
	if s.falling {
		worst, best = best, worst
	}
	p.write(margin, y+5, labelSize, ink, left, unit.Digits(worst))
	x := margin + p.widthOf(unit.Digits(worst), labelSize) + 5
	for i := range steps {
		p.box(x+vg.Length(i)*3, y, min(4, 3*vg.Length(steps-i)), 9, s.at((float64(i)+0.5)/steps))
	}
	p.write(x+steps*3+5, y+5, labelSize, ink, left, unit.Digits(best)+" "+c.Measure())
}
