package output

import (
	"bytes"
	"unicode/utf8"
)

// defaultMaxLine is where a line without end is cut into pieces, in bytes. A
// thousand hosts that all send such lines hold 32 MB.
const defaultMaxLine = 16 << 10

// Lines cuts one stream into lines. Newline, carriage return and both together
// end a line, so that no text can move back over what was written before it.
// The beginning of a line is held until its end comes or Max bytes are there.
type Lines struct {
	Max int // longest piece in bytes; must be set

	held      []byte
	skipLF    bool // the line ended with a carriage return; a newline belongs to it
	continued bool // what follows belongs to a line of which a piece was handed out
}

// Piece is a line or, where a line is longer than Max, a part of one. Text is
// valid only during the call that hands it over and has no line end.
type Piece struct {
	Text      []byte
	Continues bool // the piece before it belongs to the same line
}

// Feed hands every line that is complete to use.
func (l *Lines) Feed(data []byte, use func(Piece)) {
	for len(data) > 0 {
		if l.skipLF {
			l.skipLF = false
			if data[0] == '\n' {
				data = data[1:]
				continue
			}
		}
		end := bytes.IndexAny(data, "\r\n")
		if end < 0 {
			l.hold(data, use)
			return
		}
		l.skipLF = data[end] == '\r'
		l.finish(data[:end], use)
		data = data[end+1:]
	}
}

// End hands out what is held when the stream ends without a line end.
func (l *Lines) End(use func(Piece)) {
	if len(l.held) > 0 {
		l.finish(nil, use)
	}
	*l = Lines{Max: l.Max}
}

// finish hands out a line whose last part is tail.
func (l *Lines) finish(tail []byte, use func(Piece)) {
	text := tail
	if len(l.held) > 0 {
		l.held = append(l.held, tail...)
		text = l.held
	}
	for len(text) > l.Max {
		text = l.cut(text, use)
	}
	if len(text) > 0 || !l.continued {
		use(Piece{Text: text, Continues: l.continued})
	}
	l.held, l.continued = l.held[:0], false
}

// hold keeps the beginning of a line and hands out pieces of one that is too long.
func (l *Lines) hold(data []byte, use func(Piece)) {
	text := data
	if len(l.held) > 0 {
		l.held = append(l.held, data...)
		text = l.held
	}
	for len(text) > l.Max {
		text = l.cut(text, use)
	}
	if cap(l.held) > 2*l.Max { // a large read came by; thousands of hosts must not keep its room
		l.held = bytes.Clone(text)
		return
	}
	l.held = append(l.held[:0], text...)
}

// cut hands out the first max bytes, less if a character would be cut in two.
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
