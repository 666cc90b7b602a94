package sheet

import (
	"fmt"
	"strings"

	"github.com/xuri/excelize/v2"

	"sshpace/internal/show/document"
)

// Widths of the sheets that hold the data of pictures.
const (
	labelWidth  = 44
	seriesWidth = 12
)

// headLines is how many lines the headings of a picture's data take.
func headLines(c document.Chart) int {
	most := wrapped(c.Title+", "+c.Unit, labelWidth)
	for _, name := range c.Series {
		most = max(most, wrapped(name, seriesWidth))
	}
	return most
}

// matrix writes a heat map as cells with a colour scale.
func (b *book) matrix(c document.Chart) {
	s := b.sheet("matrix")
	b.text(s, 1, 1, c.Title+", "+c.Unit, b.bold)
	b.width(s, 1, 1, labelWidth)
	b.width(s, 2, len(c.Series)+1, seriesWidth)
	for k, name := range c.Series {
		b.text(s, k+2, 1, name, b.bold)
	}
	b.height(s, 1, headLines(c))
	for i, item := range c.Items {
		b.text(s, 1, i+2, item.Label, 0)
		for k, p := range item.Points {
			if p.Known {
				b.number(s, k+2, i+2, p.Value, b.three)
			}
		}
	}
	b.do(func() error {
		last, err := excelize.CoordinatesToCellName(len(c.Series)+1, len(c.Items)+1)
		if err != nil {
			return err
		}
		return b.file.SetConditionalFormat(s, "B2:"+last, []excelize.ConditionalFormatOptions{scale(c)})
	})
	b.do(func() error {
		return b.file.SetPanes(s, &excelize.Panes{Freeze: true, XSplit: 1, YSplit: 1, TopLeftCell: "B2", ActivePane: "bottomRight"})
	})
}

// scale colours from the worst to the best value; ratios around their reference.
func scale(c document.Chart) excelize.ConditionalFormatOptions {
	o := excelize.ConditionalFormatOptions{
		Type: "3_color_scale", Criteria: "=", MinType: "min", MidType: "percentile", MidValue: "50", MaxType: "max",
		MinColor: "#F4A582", MidColor: "#F7F7F7", MaxColor: "#92C5DE",
	}
	if !c.Rising {
		o.MinColor, o.MaxColor = o.MaxColor, o.MinColor
	}
	if c.Reference != 0 {
		o.MidType, o.MidValue = "num", fmt.Sprint(c.Reference)
	}
	return o
}

// chartRows is how many rows of a chart are drawn; its data hold all.
const chartRows = 30

// charts writes a sheet of native charts, each beside its data.
func (b *book) charts(d *document.Document) {
	s := ""
	row := 1
	for _, c := range d.Charts {
		if c.Shape == document.Heat || c.Shape == document.Trace || len(c.Items) == 0 {
			continue
		}
		if s == "" {
			s = b.sheet("charts")
			b.width(s, 1, 1, labelWidth)
			b.width(s, 2, 8, seriesWidth)
		}
		b.native(s, row, c)
		row += max(len(c.Items), 40) + 4
	}
}

// native writes the data of a chart at row, and the chart to the right of it.
func (b *book) native(s string, row int, c document.Chart) {
	b.text(s, 1, row, c.Title+", "+c.Unit, b.bold)
	for k, name := range c.Series {
		b.text(s, k+2, row, name, b.bold)
	}
	b.height(s, row, headLines(c))
	for i, item := range c.Items {
		label := item.Label
		if item.Mark != "" {
			label += " (" + item.Mark + ")"
		}
		b.text(s, 1, row+1+i, label, 0)
		for k, p := range item.Points {
			if p.Known {
				b.number(s, k+2, row+1+i, p.Value, b.three)
			}
		}
	}
	last := row + min(len(c.Items), chartRows)
	var series []excelize.ChartSeries
	for k := range c.Series {
		column, err := excelize.ColumnNumberToName(k + 2)
		b.do(func() error { return err })
		series = append(series, excelize.ChartSeries{
			Name:       fmt.Sprintf("'%s'!$%s$%d", s, column, row),
			Categories: fmt.Sprintf("'%s'!$A$%d:$A$%d", s, row+1, last),
			Values:     fmt.Sprintf("'%s'!$%s$%d:$%s$%d", s, column, row+1, column, last),
			Fill:       excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{colour(c, k)}},
		})
	}
	kind := excelize.Bar
	if c.Shape == document.Stack {
		kind = excelize.BarStacked
	}
	position := "bottom"
	if len(c.Series) == 1 {
		position = "none"
	}
	gap, vary, labels := uint(40), false, excelize.Font{Color: "333333", Size: 9}
	b.do(func() error {
		return b.file.AddChart(s, fmt.Sprintf("J%d", row), &excelize.Chart{
			Type: kind, Series: series, GapWidth: &gap, VaryColors: &vary,
			Title:  excelize.ChartTitle{Paragraph: []excelize.RichTextRun{{Text: strings.TrimSuffix(c.Title, " with 95 % intervals") + ", " + c.Unit}}},
			Legend: excelize.ChartLegend{Position: position},
			XAxis:  excelize.ChartAxis{ReverseOrder: true, Font: labels},
			YAxis:  excelize.ChartAxis{MajorGridLines: true, Font: labels},
			Dimension: excelize.ChartDimension{
				Width: 900, Height: uint(140 + rowPixels(c)*min(len(c.Items), chartRows)),
			},
		})
	})
}

// colour of a series, as in the pictures.
func colour(c document.Chart, k int) string {
	colours := []string{"0072B2", "D55E00", "007A59", "B0568B", "8A6D00", "5A5FC0"}
	if c.Shape == document.Stack {
		colours = []string{"0B3C66", "2F83C2", "A4CDEC", "7A3300", "D9742A", "F6C69F"}
	}
	return colours[k%len(colours)]
}

// rowPixels is the height of one row of bars.
func rowPixels(c document.Chart) int {
	if c.Shape == document.Stack {
		return 20
	}
	return 8 + 12*len(c.Series)
}
