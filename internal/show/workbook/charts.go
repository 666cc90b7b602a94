package workbook

import (
	"strings"

	"sshpace/internal/show/document"
)

// Widths of the sheets with data of pictures.
const (
	labelWidth  = 44
	seriesWidth = 12
)

// headLines counts the lines of the headings of a picture's data.
func headLines(c document.Chart) int {
	most := wrapped(c.Title+", "+c.Unit, labelWidth)
	for _, name := range c.Series {
		most = max(most, wrapped(name, seriesWidth))
	}
	return most
}

// data writes the figures of a picture from row on, below its title and the names of its series.
func (b *book) data(s *Sheet, row int, c document.Chart) {
	s.Text(1, row, c.Title+", "+c.Unit, b.bold)
	for k, name := range c.Series {
		s.Text(k+2, row, name, b.bold)
	}
	high(s, row, headLines(c))
	for i, item := range c.Items {
		s.Text(1, row+1+i, item.Label+item.Aside(), 0)
		for k, p := range item.Points {
			if p.Known {
				s.Number(k+2, row+1+i, p.Value, b.three)
			}
		}
	}
}

// matrix writes a heat map as cells with a color scale.
func (b *book) matrix(c document.Chart) {
	s := b.sheet("matrix")
	s.Width(1, 1, labelWidth)
	s.Width(2, len(c.Series)+1, seriesWidth)
	b.data(s, 1, c)
	s.Color(2, 2, len(c.Series)+1, len(c.Items)+1, scale(c))
	s.Freeze(1, 1)
}

// scale colors values as other formats do, in the three colors of a sheet; ratios around their
// reference.
func scale(c document.Chart) Scale {
	of, falling := c.Scale()
	o := Scale{Least: of[1].Hex(), Mid: of[2].Hex(), Greatest: of[3].Hex()}
	if falling {
		o.Least, o.Greatest = o.Greatest, o.Least
	}
	if c.Reference != 0 {
		o.Middle = &c.Reference
	}
	return o
}

// chartRows is the number of rows of a chart that are drawn; its data hold all.
const chartRows = 30

// charts writes a sheet of native charts, each next to its data.
func (b *book) charts(d *document.Document) {
	var s *Sheet
	row := 1
	for _, c := range d.Charts {
		if c.Shape == document.Heat || c.Shape == document.Curve || len(c.Items) == 0 {
			continue
		}
		if s == nil {
			s = b.sheet("charts")
			s.Width(1, 1, labelWidth)
			s.Width(2, 8, seriesWidth)
		}
		row += b.native(s, row, c)
	}
}

// pixelsOfRow is the height of a row of cells.
const pixelsOfRow = 20

// native writes the data of a chart at row, and the chart to the right of it, and returns the
// number of rows that they take.
func (b *book) native(s *Sheet, row int, c document.Chart) int {
	b.data(s, row, c)
	rows := min(len(c.Items), chartRows)
	doubts := b.doubts(s, row, c)
	drawn := Chart{
		Column: max(10, len(c.Series)+len(doubts)*2+3), Row: row, Width: 900, Height: 140 + rowPixels(c)*rows, Stacked: c.Shape == document.Stack,
		Title:  strings.TrimSuffix(c.Title, " with 95 % intervals") + ", " + c.Unit,
		Labels: 1, First: row + 1, Last: row + rows,
	}
	for k := range c.Series {
		series := Series{Column: k + 2, Color: c.Color(document.Item{}, k).Hex()}
		if column, ok := doubts[k]; ok {
			series.Minus, series.Plus = column, column+1
		}
		drawn.Series = append(drawn.Series, series)
	}
	s.Chart(drawn)
	return max(len(c.Items), drawn.Height/pixelsOfRow) + 4
}

// doubts writes how far the intervals of the series reach below and above their values, to the
// right of the data: error bars need that. first maps series to the columns that hold them. The
// parts of a stack have none.
func (b *book) doubts(s *Sheet, row int, c document.Chart) (first map[int]int) {
	first = map[int]int{}
	if c.Shape == document.Stack {
		return first
	}
	for k, name := range c.Series {
		column := len(c.Series) + 2 + 2*len(first)
		any := false
		for i, item := range c.Items {
			if k < len(item.Points) && item.Points[k].Known && item.Points[k].Hi > item.Points[k].Lo {
				p := item.Points[k]
				s.Number(column, row+1+i, max(0, p.Value-p.Lo), b.three)
				s.Number(column+1, row+1+i, max(0, p.Hi-p.Value), b.three)
				any = true
			}
		}
		if any {
			s.Text(column, row, name+", 95 %: -", b.bold)
			s.Text(column+1, row, name+", 95 %: +", b.bold)
			first[k] = column
		}
	}
	return first
}

// rowPixels is the height of one row of bars.
func rowPixels(c document.Chart) int {
	if c.Shape == document.Stack {
		return 20
	}
	return 8 + 12*len(c.Series)
}
