package output

import (
	"bytes"
	"unicode/utf8"

	"sshpace/internal/fleet"
)

// defaultMaxLine is the length at which a line without end is split, in bytes. A thousand hosts
// that all send such lines hold 32 MB.
const defaultMaxLine = 16 << 10

// Lines cuts one stream into lines. Newline, carriage return and both together end a line, so that
// no text can overwrite earlier text. The beginning of a line is held until its end comes or it has
// Max bytes.
type Lines struct {
	Max    int  // longest piece in bytes; must be set
	OnlyLF bool // only a newline ends a line, so that nothing is lost

	held      []byte
	skipLF    bool // the line ended with a carriage return; a newline belongs to it
	continued bool // the next text continues a line of which a piece was passed on
}

// Piece is a line or, if a line is longer than Max, a part of one. Text is valid only during the
// call that receives it and has no line end.
type Piece struct {
	Text      []byte
	Continues bool // the piece before it belongs to the same line
	Open      bool // the stream ended without an end of this line
}

// Feed calls use for every complete line.
func (l *Lines) Feed(data []byte, use func(Piece)) {
	for len(data) > 0 {
		if l.skipLF {
			l.skipLF = false
			if data[0] == '\n' {
				data = data[1:]
				continue
			}
		}
		end := bytes.IndexByte(data, '\n')
		if !l.OnlyLF {
			end = lineEnd(data)
		}
		if end < 0 {
			l.hold(data, use)
			return
		}
		l.skipLF = data[end] == '\r'
		l.finish(data[:end], false, use)
		data = data[end+1:]
	}
}

// lineEnd finds the first newline or carriage return. Two searches for one byte are several times
// faster than one for either.
func lineEnd(data []byte) int {
	lf := bytes.IndexByte(data, '\n')
	if lf >= 0 {
		data = data[:lf]
	}
	if cr := bytes.IndexByte(data, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// End passes on held text when the stream ends without a line end.
func (l *Lines) End(use func(Piece)) {
	if len(l.held) > 0 {
		l.finish(nil, true, use)
	}
	*l = Lines{Max: l.Max, OnlyLF: l.OnlyLF}
}

// finish passes on a line whose last part is tail.
func (l *Lines) finish(tail []byte, open bool, use func(Piece)) {
	text := tail
	if len(l.held) > 0 || len(tail) > l.Max {
		l.hold(tail, use)
		text = l.held
	}
	if len(text) > 0 || !l.continued {
		use(Piece{Text: text, Continues: l.continued, Open: open})
	}
	l.held, l.continued = l.held[:0], false
}

// hold keeps the beginning of a line, never more than Max bytes, and passes on pieces of one that
// is too long.
func (l *Lines) hold(data []byte, use func(Piece)) {
	for len(l.held)+len(data) > l.Max {
		if len(l.held) == 0 {
			data = l.cut(data, use)
			continue
		}
		room := l.Max - len(l.held)
		l.held, data = append(l.held, data[:room]...), data[room:]
		l.held = append(l.held[:0], l.cut(l.held, use)...)
	}
	l.held = append(l.held, data...)
}

// cut passes on the first max bytes, fewer if a character would be split.
func (l *Lines) cut(text []byte, use func(Piece)) []byte {
	n := l.Max
	for back := 1; back < min(utf8.UTFMax, n); back++ {
		if start := text[n-back : n]; utf8.RuneStart(start[0]) {
			if !utf8.FullRune(start) {
				n -= back
			}
			break
		}
	}
	use(Piece{Text: text[:n], Continues: l.continued})
	l.continued = true
	return text[n:]
}

// PerHost holds data of hosts that have begun, by their indices, until they end.
type PerHost[T any] map[int]*T

// Of returns the data of a host. They begin as the zero value.
func (m *PerHost[T]) Of(index int) *T {
	if *m == nil {
		*m = PerHost[T]{}
	}
	if (*m)[index] == nil {
		(*m)[index] = new(T)
	}
	return (*m)[index]
}

// Take removes the data of a host that has ended, and returns them.
func (m *PerHost[T]) Take(index int) T {
	of := *m.Of(index)
	delete(*m, index)
	return of
}

// HostLines cuts the output of many hosts into lines, each stream by itself.
type HostLines struct {
	Lines // as each of them begins
	live  PerHost[[2]Lines]
}

// Feed calls use for every complete line.
func (l *HostLines) Feed(e fleet.Event, use func(Piece)) {
	lines := &l.live.Of(e.Index)[e.Stream]
	lines.Max, lines.OnlyLF = l.Max, l.OnlyLF
	lines.Feed(e.Data, use)
}

// End passes on held text of a host that has ended.
func (l *HostLines) End(index int, use func(fleet.Stream, Piece)) {
	for i, lines := range l.live.Take(index) {
		lines.End(func(p Piece) { use(fleet.Stream(i), p) })
	}
}
