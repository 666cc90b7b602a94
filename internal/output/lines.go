package output

import (
	"bytes"
	"unicode/utf8"
)

// defaultMaxLine is where a line without end is cut into pieces, in bytes. A
// thousand hosts that all send such lines hold 32 MB.
const defaultMaxLine = 16 << 10

// lines cuts one stream into lines. Newline, carriage return and both together
// end a line, so that no text can move back over what was written before it.
// The beginning of a line is held until its end comes or max bytes are there.
type lines struct {
	held      []byte
	max       int  // longest piece in bytes
	skipLF    bool // the line ended with a carriage return; a newline belongs to it
	continued bool // what follows belongs to a line of which a piece was handed out
}

// piece is a line or, where a line is longer than max, a part of one. Text is
// valid only during the call that hands it over and has no line end.
type piece struct {
	text      []byte
	continues bool // the piece before it belongs to the same line
}

// feed hands every line that is complete to use.
func (l *lines) feed(data []byte, use func(piece)) {
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

// end hands out what is held when the stream ends without a line end.
func (l *lines) end(use func(piece)) {
	if len(l.held) > 0 {
		l.finish(nil, use)
	}
	*l = lines{max: l.max}
}

// finish hands out a line whose last part is tail.
func (l *lines) finish(tail []byte, use func(piece)) {
	text := tail
	if len(l.held) > 0 {
		l.held = append(l.held, tail...)
		text = l.held
	}
	for len(text) > l.max {
		text = l.cut(text, use)
	}
	if len(text) > 0 || !l.continued {
		use(piece{text: text, continues: l.continued})
	}
	l.held, l.continued = l.held[:0], false
}

// hold keeps the beginning of a line and hands out pieces of one that is too long.
func (l *lines) hold(data []byte, use func(piece)) {
	text := data
	if len(l.held) > 0 {
		l.held = append(l.held, data...)
		text = l.held
	}
	for len(text) > l.max {
		text = l.cut(text, use)
	}
	l.held = append(l.held[:0], text...)
}

// cut hands out the first max bytes, less if a character would be cut in two.
func (l *lines) cut(text []byte, use func(piece)) []byte {
	n := l.max
	for back := 1; back < min(utf8.UTFMax, n); back++ {
		if start := text[n-back : n]; utf8.RuneStart(start[0]) {
			if !utf8.FullRune(start) {
				n -= back
			}
			break
		}
	}
	use(piece{text: text[:n], continues: l.continued})
	l.continued = true
	return text[n:]
}
