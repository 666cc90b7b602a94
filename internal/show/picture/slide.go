package picture

import (
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"sshpace/internal/base/unit"
	"sshpace/internal/show/document"
)

// A slide is 16:9: 1,920 by 1,080 pixels as PNG.
const (
	slideWidth  = vg.Length(960)
	slideHeight = vg.Length(540)
	slideMargin = vg.Length(32)
	slideTitle  = vg.Length(22)
	slideText   = vg.Length(15)
	slideSmall  = vg.Length(11)
)

// answerChart is the name of the charts that a slide shows.
const answerChart = "answer"

// slideOf are the charts of a slide; nil where the document has no answer, or other
// charts are asked for.
func slideOf(d *document.Document, names []string) []document.Chart {
	if len(names) > 0 {
		return nil
	}
	var out []document.Chart
	for _, c := range d.Charts {
		if c.Name == answerChart {
			out = append(out, c)
		}
	}
	return out
}

// slide draws the answer above its charts, which stand beside each other.
func slide(c draw.Canvas, d *document.Document, charts []document.Chart) error {
	p, err := newPen(c, charts)
	if err != nil {
		return err
	}
	p.box(0, 0, slideWidth, slideHeight, white)
	const room = slideWidth - 2*slideMargin
	y := slideMargin + slideTitle/2
	p.write(slideMargin, y, slideTitle, ink, left, p.fit(d.Title, slideTitle, room))
	y += 34
	for _, line := range append(slices.Clone(d.Answer.Says), d.Answer.Config...) {
		y = p.wrapped(slideMargin, y, room, line)
	}
	each := room / vg.Length(len(charts))
	for i, chart := range charts {
		p.bars(slideMargin+vg.Length(i)*each, y+14, each-16, slideHeight-slideMargin-24, chart)
	}
	y = slideHeight - slideMargin + 4
	if p.widthOf(d.Footnote, slideSmall) > room {
		y -= leading * slideSmall
	}
	p.paragraph(slideMargin, y, slideSmall, room, d.Footnote)
	return nil
}

// wrapped writes a text over as many lines as it takes, and tells where the next one stands.
func (p pen) wrapped(x, y, room vg.Length, line string) vg.Length {
	const each = 22
	for p.widthOf(line, slideText) > room {
		first, rest := p.firstLine(line, slideText, room)
		if rest == "" {
			break
		}
		p.write(x, y, slideText, ink, left, first)
		line, y = rest, y+each
	}
	p.write(x, y, slideText, ink, left, p.fit(line, slideText, room))
	return y + each
}

// labelled is an item's label, cut if need be, with its mark, which never is.
func (p pen) labelled(item document.Item, room vg.Length) string {
	return p.fit(item.Label, slideSmall, room-p.widthOf(item.Aside(), slideSmall)) + item.Aside()
}

// bars draws one chart from y down to bottom.
func (p pen) bars(x, y, wide, bottom vg.Length, c document.Chart) {
	p.write(x, y, slideText, ink, left, p.fit(c.Title+", "+c.Unit, slideText, wide))
	y += 18
	names := p.labelRoom(p.panels(c), slideSmall, wide*11/20)
	_, high := extent(document.Bars, p.panels(c))
	a := axis{0, high, x + names + 8, x + wide - 44, 1, false}
	each := min((bottom-y)/vg.Length(len(c.Items)), 40)
	for _, item := range c.Items {
		middle := y + each/2
		p.write(x+names, middle, slideSmall, ink, right, p.labelled(item, names))
		if point := item.Points[0]; point.Known {
			p.box(a.at(0), middle-each*0.36, a.at(point.Value)-a.at(0), each*0.72, colourOf(c, item, 0))
			p.whisker(a, middle, point, ink)
			p.write(max(a.at(point.Hi), a.at(point.Value))+5, middle, slideSmall, ink, left, unit.Figure(point.Value))
		}
		y += each
	}
}
