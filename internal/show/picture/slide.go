package picture

import (
	"slices"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/show/document"
)

// A slide is 16:9: 1,920 by 1,080 pixels as PNG.
const (
	slideWidth  = vg.Length(960)
	slideHeight = vg.Length(540)
	slideMargin = vg.Length(32)
	slideTitle  = vg.Length(22)
	slideText   = vg.Length(16)
	slideSmall  = vg.Length(15)
)

// slideOf returns the charts of a slide; nil where the document has no answer, or other charts are
// wanted.
func slideOf(d *document.Document, names []string) []document.Chart {
	if len(names) > 0 {
		return nil
	}
	var out []document.Chart
	for _, c := range d.Charts {
		if c.Name == document.AnswerChart {
			out = append(out, c)
		}
	}
	return out
}

// slide draws the answer above its charts, which stand side by side.
func (p pen) slide(d *document.Document) {
	const room = slideWidth - 2*slideMargin
	y := slideMargin + slideTitle/2
	p.write(slideMargin, y, slideTitle, ink, left, p.fit(d.Title, slideTitle, room))
	y += 34
	for _, line := range append(slices.Clone(d.Answer.Says), d.Answer.Config...) {
		y = p.paragraph(slideMargin, y, slideText, room, ink, line)
	}
	y += 14
	foot := slideHeight - slideMargin + 4 - leading*slideSmall*vg.Length(len(p.lines(d.Footnote, slideSmall, room))-1)
	each := room / vg.Length(len(p.charts))
	for i, chart := range p.charts {
		p.bars(slideMargin+vg.Length(i)*each, y, each-16, foot-slideSmall-8, chart)
	}
	p.paragraph(slideMargin, foot, slideSmall, room, soft, d.Footnote)
}

// bars draws one chart from y down to bottom at most.
func (p pen) bars(x, y, wide, bottom vg.Length, c document.Chart) {
	p.write(x, y, slideText, ink, left, p.fit(c.Title, slideText, wide))
	y = p.paragraph(x, y+leading*slideText, slideSmall, wide, soft, c.Caption())
	room := bottom - y - axisRoom(slideSmall)
	p.rows(plot{x, y, wide, min(room/vg.Length(len(c.Items)), 40), slideSmall}, c)
}
