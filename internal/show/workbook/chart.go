package workbook

import "fmt"

// Chart is a chart of horizontal bars, the first on top.
type Chart struct {
	Column, Row   int // of the cell below its upper left corner
	Width, Height int // in pixels of 1/96 inch
	Title         string
	Stacked       bool // the series are parts of one bar
	Labels        int  // column of the names of bars
	First, Last   int  // rows of the bars; the names of series are above them
	Series        []Series
}

// Series is a column of numbers.
type Series struct {
	Column      int
	Color       string // RRGGBB
	Minus, Plus int    // columns of how far the error bars reach down and up; 0: none
}

const (
	pixel = 9525 // in EMU (section 20.1.2.1)
	grey  = "595959"
	faint = "D9D9D9"
)

// writeCharts writes the drawing of the n-th sheet, which places its charts, and the charts.
func (s *Sheet) writeCharts(p *parts, n int, charts *int) {
	p.add(fmt.Sprintf("xl/worksheets/_rels/sheet%d.xml.rels", n), func(w *writer) {
		w.relations([]relation{{"drawing", fmt.Sprintf("../drawings/drawing%d.xml", n)}})
	})
	p.typed(fmt.Sprintf("xl/drawings/drawing%d.xml", n), "drawing", s.writeDrawing)
	var used []relation
	for _, c := range s.charts {
		*charts++
		name := fmt.Sprintf("charts/chart%d.xml", *charts)
		used = append(used, relation{"chart", "../" + name})
		p.typed("xl/"+name, "drawingml.chart", func(w *writer) { s.writeChart(w, c) })
	}
	p.add(fmt.Sprintf("xl/drawings/_rels/drawing%d.xml.rels", n), func(w *writer) { w.relations(used) })
}

func (s *Sheet) writeDrawing(w *writer) {
	w.printf(`<xdr:wsDr xmlns:xdr="%sspreadsheetDrawing" xmlns:a="%smain" xmlns:c="%schart" xmlns:r="%s">`, drawingSpace, drawingSpace, drawingSpace, relSpace)
	for i, c := range s.charts {
		w.printf(`<xdr:oneCellAnchor><xdr:from><xdr:col>%d</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>%d</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:from>`, c.Column-1, c.Row-1)
		w.printf(`<xdr:ext cx="%d" cy="%d"/><xdr:graphicFrame macro=""><xdr:nvGraphicFramePr>`, c.Width*pixel, c.Height*pixel)
		w.printf(`<xdr:cNvPr id="%d" name="Chart %d" descr="%s"/><xdr:cNvGraphicFramePr/></xdr:nvGraphicFramePr>`, i+2, i+1, escape(c.Title))
		w.printf(`<xdr:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/></xdr:xfrm><a:graphic><a:graphicData uri="%schart"><c:chart r:id="rId%d"/>`, drawingSpace, i+1)
		w.printf(`</a:graphicData></a:graphic></xdr:graphicFrame><xdr:clientData/></xdr:oneCellAnchor>`)
	}
	w.printf(`</xdr:wsDr>`)
}

func (s *Sheet) writeChart(w *writer, c Chart) {
	w.printf(`<c:chartSpace xmlns:c="%schart" xmlns:a="%smain"><c:roundedCorners val="0"/><c:chart>`, drawingSpace, drawingSpace)
	w.printf(`<c:title><c:tx><c:rich><a:bodyPr/><a:p><a:r><a:rPr sz="1400" b="0">%s</a:rPr><a:t>%s</a:t></a:r></a:p></c:rich></c:tx><c:overlay val="0"/></c:title>`,
		paint(grey), escape(c.Title))
	w.printf(`<c:autoTitleDeleted val="0"/><c:plotArea><c:layout/>`)
	s.writeBars(w, c)
	// The order of names is that of the sheet, from top to bottom.
	w.printf(`<c:catAx><c:axId val="1"/><c:scaling><c:orientation val="maxMin"/></c:scaling><c:delete val="0"/><c:axPos val="l"/>%s`, axis)
	w.printf(`<c:crossAx val="2"/><c:crosses val="autoZero"/><c:auto val="1"/><c:lblAlgn val="ctr"/><c:lblOffset val="100"/><c:noMultiLvlLbl val="0"/></c:catAx>`)
	w.printf(`<c:valAx><c:axId val="2"/><c:scaling><c:orientation val="minMax"/></c:scaling><c:delete val="0"/><c:axPos val="t"/>`)
	w.printf(`<c:majorGridlines><c:spPr>%s</c:spPr></c:majorGridlines>%s`, line, axis)
	w.printf(`<c:crossAx val="1"/><c:crosses val="autoZero"/><c:crossBetween val="between"/></c:valAx></c:plotArea>`)
	if len(c.Series) > 1 {
		w.printf(`<c:legend><c:legendPos val="b"/><c:overlay val="0"/></c:legend>`)
	}
	w.printf(`<c:plotVisOnly val="0"/><c:dispBlanksAs val="gap"/></c:chart></c:chartSpace>`)
}

func (s *Sheet) writeBars(w *writer, c Chart) {
	grouping := "clustered"
	if c.Stacked {
		grouping = "stacked"
	}
	w.printf(`<c:barChart><c:barDir val="bar"/><c:grouping val="%s"/><c:varyColors val="0"/>`, grouping)
	for i, series := range c.Series {
		name, values := area{series.Column, c.First - 1, series.Column, c.First - 1}, area{series.Column, c.First, series.Column, c.Last}
		w.printf(`<c:ser><c:idx val="%d"/><c:order val="%d"/><c:tx><c:strRef><c:f>%s</c:f></c:strRef></c:tx>`, i, i, escape(s.in(name)))
		w.printf(`<c:spPr>%s</c:spPr><c:invertIfNegative val="0"/>`, paint(series.Color))
		if series.Minus != 0 && series.Plus != 0 {
			s.writeErrorBars(w, area{series.Minus, c.First, series.Minus, c.Last}, area{series.Plus, c.First, series.Plus, c.Last})
		}
		w.printf(`<c:cat><c:strRef><c:f>%s</c:f></c:strRef></c:cat>`, escape(s.in(area{c.Labels, c.First, c.Labels, c.Last})))
		w.printf(`<c:val><c:numRef><c:f>%s</c:f></c:numRef></c:val></c:ser>`, escape(s.in(values)))
	}
	w.printf(`<c:gapWidth val="40"/>%s<c:axId val="1"/><c:axId val="2"/></c:barChart>`, when(c.Stacked, `<c:overlap val="100"/>`))
}

func (s *Sheet) writeErrorBars(w *writer, minus, plus area) {
	w.printf(`<c:errBars><c:errBarType val="both"/><c:errValType val="cust"/><c:noEndCap val="0"/>`)
	w.printf(`<c:plus><c:numRef><c:f>%s</c:f></c:numRef></c:plus>`, escape(s.in(plus)))
	w.printf(`<c:minus><c:numRef><c:f>%s</c:f></c:numRef></c:minus>`, escape(s.in(minus)))
	w.printf(`<c:spPr><a:ln w="12700">%s</a:ln></c:spPr></c:errBars>`, paint("333333"))
}

func paint(color string) string {
	return `<a:solidFill><a:srgbClr val="` + color + `"/></a:solidFill>`
}

// Lines and labels of both axes.
var (
	line = `<a:ln w="9525">` + paint(faint) + `</a:ln>`
	axis = `<c:numFmt formatCode="General" sourceLinked="0"/><c:majorTickMark val="none"/><c:minorTickMark val="none"/><c:tickLblPos val="nextTo"/>` +
		`<c:spPr>` + line + `</c:spPr><c:txPr><a:bodyPr/><a:p><a:pPr><a:defRPr sz="900">` + paint("333333") + `</a:defRPr></a:pPr><a:endParaRPr lang="en-US"/></a:p></c:txPr>`
)
