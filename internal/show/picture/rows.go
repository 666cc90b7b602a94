package picture

import (
	"image/color"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/base/unit"
	"sshpace/internal/show/document"
)

// plot is where the rows of a chart are: each has a height, and their letters a size.
type plot struct{ x, y, wide, each, size vg.Length }

// rows draws dots, bars or stacks: a row for each item with its name, and its figures in their own
// column, where none can be mistaken for the end of a bar; the axis is below.
func (p pen) rows(at plot, c document.Chart) {
	names := min(p.labelRoom(c, at.size), at.wide*11/20)
	start := at.x + names + at.size
	a := axisOf(c, p.panels(c), start, at.x+at.wide-p.figureRoom(c, at.size)-at.size)
	p.grid(a, at.y, at.y+vg.Length(len(c.Items))*at.each, at.size, c)
	for i, item := range c.Items {
		middle := at.y + (vg.Length(i)+0.5)*at.each
		name := p.fit(item.Label, at.size, names-p.widthOf(item.Aside(), at.size)) + item.Aside()
		p.write(start-at.size/2, middle, at.size, ink, right, name)
		p.row(a, at, middle, c, item)
	}
}

// labelRoom is the width of a chart's widest name.
func (p pen) labelRoom(c document.Chart, size vg.Length) vg.Length {
	var names []string
	for _, item := range p.panels(c) {
		names = append(names, item.Label+item.Aside())
	}
	return p.widest(size, names)
}

// figureRoom is the width of a chart's widest figure.
func (p pen) figureRoom(c document.Chart, size vg.Length) vg.Length {
	var figures []string
	for _, item := range p.panels(c) {
		for _, point := range item.Points {
			figures = append(figures, unit.Digits(point.Value))
		}
		figures = append(figures, unit.Digits(sum(item)))
	}
	return p.widest(size, figures)
}

// sum returns the length of a stack.
func sum(item document.Item) (total float64) {
	for _, point := range item.Points {
		if point.Known {
			total += max(0, point.Value)
		}
	}
	return total
}

// grid draws the ticks, the unit and the reference line.
func (p pen) grid(a axis, top, bottom, size vg.Length, c document.Chart) {
	for _, v := range a.ticks() {
		p.line(a.at(v), top, a.at(v), bottom, 0.5, rule)
		p.write(a.at(v), bottom+size, 0.9*size, soft, center, a.tickText(v))
	}
	p.write((a.from+a.to)/2, bottom+2.3*size, size, soft, center, c.Measure())
	if c.Reference != 0 {
		p.line(a.at(c.Reference), top, a.at(c.Reference), bottom, 1, soft, 3, 3)
	}
}

func (p pen) row(a axis, at plot, middle vg.Length, c document.Chart, item document.Item) {
	if c.Shape == document.Stack {
		p.stack(a, at, middle, c, item)
		return
	}
	each := 0.8 * at.each / vg.Length(max(1, len(item.Points)))
	for k, point := range item.Points {
		if !point.Known {
			continue
		}
		y := middle + (vg.Length(k)-vg.Length(len(item.Points)-1)/2)*each
		shade := colorOf(c, item, k)
		if c.Shape == document.Bars {
			p.box(a.at(0), y-0.45*each, a.at(point.Value)-a.at(0), 0.9*each, shade)
			p.whisker(a, y, at.size/4, point, ink)
		} else {
			p.whisker(a, y, at.size/4, point, shade)
			fill := color.Color(shade)
			if point.Predicted {
				fill = white
			}
			p.dot(a.at(point.Value), y, 0.35*at.size, fill, shade)
		}
		if len(item.Points) < 2 {
			shade = ink
		}
		p.write(at.x+at.wide, y, at.size, shade, right, unit.Digits(point.Value))
	}
}

// whisker draws an interval as a line at height y, with a stroke of end above and below at both
// ends.
func (p pen) whisker(a axis, y, end vg.Length, point document.Point, shade color.Color) {
	if point.Lo == point.Hi {
		return
	}
	lo, hi := a.at(point.Lo), a.at(point.Hi)
	p.line(lo, y, hi, y, 1, shade)
	p.line(lo, y-end, lo, y+end, 1, shade)
	p.line(hi, y-end, hi, y+end, 1, shade)
}

func (p pen) stack(a axis, at plot, middle vg.Length, c document.Chart, item document.Item) {
	from := 0.0
	for k, point := range item.Points {
		if point.Known && point.Value > 0 {
			p.box(a.at(from), middle-0.36*at.each, a.at(from+point.Value)-a.at(from), 0.72*at.each, colorOf(c, item, k))
			from += point.Value
		}
	}
	p.write(at.x+at.wide, middle, at.size, ink, right, unit.Digits(sum(item)))
}
