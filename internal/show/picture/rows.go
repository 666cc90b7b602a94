package picture

import (
	"image/color"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/base/unit"
	"sshpace/internal/show/document"
)

func named(item document.Item) string { return item.Label + item.Aside() }

const labelsAtMost = vg.Length(260)

// labelRoom is what the widest label needs in letters of a size, and at most as much as there is for it.
func (p pen) labelRoom(items []document.Item, size, most vg.Length) vg.Length {
	room := vg.Length(0)
	for _, item := range items {
		room = max(room, p.widthOf(named(item), size))
	}
	return min(room, most)
}

// rows draws dots, bars or stacks, a row for each item, and the axis below.
func (p pen) rows(y vg.Length, c document.Chart) {
	items := drawn(c)
	start := margin + p.labelRoom(p.panels(c), labelSize, labelsAtMost) + 8
	a := axisOf(c, p.panels(c), start, width-margin-30)
	bottom := y + vg.Length(len(items))*rowHeight(c)
	p.grid(a, y, bottom, c)
	for i, item := range items {
		middle := y + (vg.Length(i)+0.5)*rowHeight(c)
		p.write(start-6, middle, labelSize, ink, right, p.fit(named(item), labelSize, labelsAtMost))
		p.row(a, middle, c, item)
	}
}

// grid draws the ticks, the unit and the reference line.
func (p pen) grid(a axis, top, bottom vg.Length, c document.Chart) {
	for _, v := range a.ticks() {
		p.line(a.at(v), top, a.at(v), bottom, 0.5, rule)
		p.write(a.at(v), bottom+8, 7.5, soft, centre, a.tickText(v))
	}
	p.write((a.from+a.to)/2, bottom+19, labelSize, soft, centre, c.Unit)
	if c.Reference != 0 {
		p.line(a.at(c.Reference), top, a.at(c.Reference), bottom, 1, soft, 3, 3)
	}
}

func (p pen) row(a axis, middle vg.Length, c document.Chart, item document.Item) {
	each := (rowHeight(c) - 4) / vg.Length(max(1, len(item.Points)))
	if c.Shape == document.Stack {
		p.stack(a, middle, c, item)
		return
	}
	for k, point := range item.Points {
		if !point.Known {
			continue
		}
		y := middle + (vg.Length(k)-vg.Length(len(item.Points)-1)/2)*each
		colour := colourOf(c, item, k)
		if c.Shape == document.Bars {
			p.box(a.at(0), y-each/2+0.5, a.at(point.Value)-a.at(0), each-1, colour)
			p.whisker(a, y, point, ink)
		} else {
			p.whisker(a, y, point, colour)
			fill := color.Color(colour)
			if point.Predicted {
				fill = white
			}
			p.dot(a.at(point.Value), y, 3.2, fill, colour)
		}
		p.write(max(a.at(point.Hi), a.at(point.Value)+4)+4, y, 7, soft, left, unit.Figure(point.Value))
	}
}

// whisker draws an interval.
func (p pen) whisker(a axis, y vg.Length, point document.Point, colour color.Color) {
	if point.Lo == point.Hi {
		return
	}
	lo, hi := a.at(point.Lo), a.at(point.Hi)
	p.line(lo, y, hi, y, 0.9, colour)
	p.line(lo, y-2, lo, y+2, 0.9, colour)
	p.line(hi, y-2, hi, y+2, 0.9, colour)
}

func (p pen) stack(a axis, middle vg.Length, c document.Chart, item document.Item) {
	sum := 0.0
	for k, point := range item.Points {
		if point.Known && point.Value > 0 {
			from := a.at(sum)
			sum += point.Value
			p.box(from, middle-4.5, a.at(sum)-from, 9, colourOf(c, item, k))
		}
	}
	p.write(a.at(sum)+4, middle, 7, soft, left, unit.Figure(sum))
}
