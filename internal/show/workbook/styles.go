package workbook

import (
	"cmp"
	"slices"
)

// Style is the look of a cell.
type Style struct {
	Bold   bool
	Size   float64 // of the letters in points; 0 = 11
	Fill   string  // color of the cell as RRGGBB; "" = none
	Wrap   bool    // text is broken into lines, from the top of the cell
	Center bool
	Format string // of numbers, such as 0.00; "" = the program's choice
}

// styles are a workbook's, except the plain one, which comes first.
type styles []Style

func (all *styles) add(s Style) int {
	*all = append(*all, s)
	return len(*all)
}

// Numbers of formats: 1 is built in (section 18.8.30), own ones begin at 164.
const (
	integers  = 1
	ownFormat = 164
)

// write writes each style with its own font, fill and format: two programs in three want the two
// fills before them.
func (all styles) write(w *writer) {
	list := slices.Concat(styles{{}}, all)
	w.printf(`<styleSheet xmlns="%s"><numFmts count="%d">`, mainSpace, len(list))
	for i, s := range list {
		w.printf(`<numFmt numFmtId="%d" formatCode="%s"/>`, ownFormat+i, escape(cmp.Or(s.Format, "General")))
	}
	w.printf(`</numFmts><fonts count="%d">`, len(list))
	for _, s := range list {
		w.printf(`<font>%s<sz val="%g"/><name val="Calibri"/><family val="2"/></font>`, when(s.Bold, `<b/>`), cmp.Or(s.Size, 11))
	}
	w.printf(`</fonts><fills count="%d"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>`, len(list)+2)
	for _, s := range list {
		if s.Fill == "" {
			w.printf(`<fill><patternFill patternType="none"/></fill>`)
			continue
		}
		w.printf(`<fill><patternFill patternType="solid"><fgColor rgb="FF%s"/></patternFill></fill>`, s.Fill)
	}
	w.printf(`</fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="%d">`, len(list))
	for i, s := range list {
		w.printf(`<xf numFmtId="%d" fontId="%d" fillId="%d" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1" applyFill="1" applyAlignment="1">%s</xf>`,
			s.format(i), i, s.fill(i), s.alignment())
	}
	w.printf(`</cellXfs></styleSheet>`)
}

func (s Style) format(i int) int {
	switch s.Format {
	case "":
		return 0
	case "0":
		return integers
	}
	return ownFormat + i
}

func (s Style) fill(i int) int {
	if s.Fill == "" {
		return 0
	}
	return i + 2
}

func (s Style) alignment() string {
	switch {
	case s.Wrap:
		return `<alignment vertical="top" wrapText="1"/>`
	case s.Center:
		return `<alignment horizontal="center"/>`
	}
	return ""
}

func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}
