package picture

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/show/document"
)

// curveRoom is the height of a chart of curves.
const curveRoom = vg.Length(200)

// lastX returns the largest X of all points.
func lastX(items []document.Item) (last float64) {
	for _, item := range items {
		last = max(last, slices.Max(item.X))
	}
	return last
}

// levels draws a line across x for each tick of v, with its value.
func (p pen) levels(x, v axis) {
	for _, tick := range v.ticks() {
		p.line(x.from, v.at(tick), x.to, v.at(tick), 0.5, rule)
		p.write(x.from-5, v.at(tick), noteSize, soft, right, v.tickText(tick))
	}
}

// curve draws lines over X: a dot with its interval for each measurement, and a broken line for an
// upper bound.
func (p pen) curve(y vg.Length, c document.Chart) {
	x := newAxis(0, lastX(c.Items), true, margin+38, p.width-margin-10)
	v := axisOf(c, c.Items, y+curveRoom, y)
	p.levels(x, v)
	p.write(x.to-4, y+8, noteSize, soft, right, c.Measure()) // where curves that fall leave room
	across := c
	across.Unit, across.Reference = c.Across, 0
	p.grid(x, y, y+curveRoom, labelSize, across)
	for k, item := range c.Items {
		p.curveOf(x, v, c, k, item)
	}
}

// itemColor returns the color of a series that may be an item.
func itemColor(c document.Chart, k int) color.NRGBA {
	if c.Shape == document.Curve && c.Items[k].Bound {
		return soft
	}
	return colorOf(c, document.Item{}, k)
}

func (p pen) curveOf(x, v axis, c document.Chart, k int, item document.Item) {
	shade := itemColor(c, k)
	for i, point := range item.Points {
		at := x.at(item.X[i])
		if i > 0 && !(item.Bound && i%2 == 0) {
			p.line(x.at(item.X[i-1]), v.at(item.Points[i-1].Value), at, v.at(point.Value), 1.2, shade)
		}
		if !item.Bound {
			p.line(at, v.at(point.Lo), at, v.at(point.Hi), 0.8, shade)
			p.dot(at, v.at(point.Value), 3, shade, shade)
		}
	}
}
