// Package termsafe makes text from elsewhere safe to show on a terminal: remote output, banners,
// host names, error texts. A hostile machine must not move the cursor, set titles, answer for the
// keyboard, hide or reorder text.
//
// Escape sequences vanish, since colors are the usual case; every other control character becomes
// visible text such as \x07 or \u202e. Clean text is returned as it is, without a copy. Cleaning
// twice changes nothing.
package termsafe

import (
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSequence is the longest escape sequence that is removed as a whole, in bytes. A longer one is
// shown, so that nothing much can be hidden in it and a Writer holds no more than this back.
const maxSequence = 4096

const esc = 0x1b

// Text returns src made safe, with tabs and newlines kept. It returns src itself when nothing needs
// cleaning; otherwise the result is new. It is valid UTF-8.
func Text(src []byte) []byte {
	n := cleanPrefix(src)
	if n == len(src) {
		return src
	}
	return Append(append(make([]byte, 0, len(src)+16), src[:n]...), src[n:])
}

// Append appends src made safe to dst.
func Append(dst, src []byte) []byte {
	dst, _ = scan(dst, src, true)
	return dst
}

// Line returns text made safe for one line: newlines are shown as \n, too.
func Line(text string) string {
	safe := Text([]byte(text))
	return strings.ReplaceAll(string(safe), "\n", `\n`)
}

// OneLine keeps a message, which may quote what a host sent, on one line and free of terminal
// controls: line ends and tabs become blanks.
func OneLine(text string) string {
	return Line(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(strings.TrimSpace(text)))
}

// Writer cleans a stream that comes in pieces, such as the standard error of a child process. Close
// writes the rest; it does not close W.
type Writer struct {
	W    io.Writer
	held []byte // the beginning of a sequence that the next piece may complete
}

// Write cleans p and writes it to W.
func (w *Writer) Write(p []byte) (int, error) {
	src := p
	if len(w.held) > 0 {
		src = append(w.held, p...)
	}
	if n := cleanPrefix(src); n == len(src) {
		w.held = w.held[:0]
		return len(p), w.write(src)
	}
	out, rest := scan(make([]byte, 0, len(src)+16), src, false)
	w.held = append([]byte(nil), rest...)
	return len(p), w.write(out)
}

// Close writes the text that is still held back.
func (w *Writer) Close() error {
	out := Append(nil, w.held)
	w.held = nil
	return w.write(out)
}

func (w *Writer) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := w.W.Write(p)
	return err
}

// cleanPrefix counts the bytes at the start of src that are printable ASCII, tabs or newlines. It
// is the fast path: most remote output is nothing else.
func cleanPrefix(src []byte) int {
	for i, c := range src {
		if c-0x20 >= 0x5f && c != '\t' && c != '\n' { // unsigned: outside 0x20..0x7e
			return i
		}
	}
	return len(src)
}

// scan appends src made safe to dst. Unless final, it stops before an incomplete sequence at the
// end of src, and returns it as rest.
func scan(dst, src []byte, final bool) (out, rest []byte) {
	for len(src) > 0 {
		n := cleanPrefix(src)
		dst, src = append(dst, src[:n]...), src[n:]
		if len(src) == 0 {
			break
		}
		switch c := src[0]; {
		case c < utf8.RuneSelf && c != esc: // binary data consists of these
			dst, src = appendHex(append(dst, `\x`...), rune(c), 2), src[1:]
		case !final && unfinished(src):
			return dst, src
		default:
			dst, src = one(dst, src)
		}
	}
	return dst, nil
}

// unfinished reports whether src may be only the beginning of an escape sequence, of a UTF-8
// character or of an emoji.
func unfinished(src []byte) bool {
	if src[0] == esc {
		_, complete := sequence(src)
		return !complete
	}
	n, complete := emoji(src)
	return !utf8.FullRune(src) || n > 0 && n < maxSequence && !complete
}

// pictures are the characters of which emoji consist (UTS 51), in whole blocks; tones may follow
// one.
var (
	pictures = &unicode.RangeTable{
		R16: []unicode.Range16{{0x2190, 0x21ff, 1}, {0x2600, 0x27bf, 1}, {0x2b00, 0x2bff, 1}},
		R32: []unicode.Range32{{0x1f000, 0x1faff, 1}},
	}
	tones = &unicode.RangeTable{R16: []unicode.Range16{{0xfe0f, 0xfe0f, 1}}, R32: []unicode.Range32{{0x1f3fb, 0x1f3ff, 1}}}
)

// emoji measures the emoji at the start of src, 0 for none. It is complete unless more bytes could
// belong to it. Only inside one is the joiner of characters safe: it hides nothing there.
func emoji(src []byte) (n int, complete bool) {
	const joiner = 0x200d
	if src[0] != 0xe2 && src[0] != 0xf0 { // the first bytes of pictures in UTF-8
		return 0, true
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(src[at:])
		if !unicode.Is(pictures, r) {
			return n, utf8.FullRune(src[at:])
		}
		for at += size; ; at += size {
			if r, size = utf8.DecodeRune(src[at:]); !unicode.Is(tones, r) {
				break
			}
		}
		if n = at; r != joiner {
			return n, utf8.FullRune(src[at:])
		}
		at += size
	}
}

// one appends the first character of src, which is not printable ASCII, in its safe form,
// and returns the rest.
func one(dst, src []byte) (out, rest []byte) {
	if src[0] == esc {
		if n, _ := sequence(src); n > 1 {
			return dst, src[n:]
		}
	}
	r, size := utf8.DecodeRune(src)
	if n, _ := emoji(src); n > 0 {
		return append(dst, src[:n]...), src[n:]
	}
	switch {
	case r == utf8.RuneError && size == 1:
		dst = appendHex(append(dst, `\x`...), rune(src[0]), 2)
	case Unsafe(r) && r < 0x80:
		dst = appendHex(append(dst, `\x`...), r, 2)
	case Unsafe(r) && r < 0x10000:
		dst = appendHex(append(dst, `\u`...), r, 4)
	case Unsafe(r):
		dst = appendHex(append(dst, `\U`...), r, 8)
	default:
		dst = append(dst, src[:size]...)
	}
	return dst, src[size:]
}

// Unsafe reports whether a character must not reach a terminal: the C0 controls except tab and
// newline, DEL, the C1 controls (ECMA-48 section 8), the line and paragraph separators, and
// invisible characters: the format characters (Unicode general category Cf), among them the
// bidirectional controls (Unicode Standard Annex 9), which can reorder the shown text, and the
// other characters that a program ignores if it does not know them (UAX 44,
// Other_Default_Ignorable_Code_Point). Otherwise two texts that look the same could differ.
func Unsafe(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\t' && r != '\n'
	case r < 0x7f:
		return false
	case r <= 0x9f, r == 0x2028, r == 0x2029:
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point)
}

func appendHex(dst []byte, r rune, digits int) []byte {
	const hex = "0123456789abcdef"
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, hex[r>>shift&15])
	}
	return dst
}

// Sequence returns the length of the escape sequence at the start of src, which Text removes; 0 is
// none. It is complete unless more bytes could belong to it.
func Sequence(src []byte) (n int, complete bool) {
	if len(src) == 0 || src[0] != esc {
		return 0, true
	}
	if n, complete = sequence(src); n == 1 && complete {
		n = 0
	}
	return n, complete
}

// sequence measures the escape sequence at the start of src (ECMA-48 sections 5.3, 5.4 and 5.6). It
// is complete unless more bytes could belong to it. A result of 1 means that there is only the
// escape character itself.
func sequence(src []byte) (n int, complete bool) {
	if len(src) < 2 {
		return 1, false
	}
	switch c := src[1]; {
	case c == '[':
		return control(src)
	case bytes.IndexByte([]byte("]PX^_"), c) >= 0:
		return controlString(src)
	case c >= 0x20 && c <= 0x7e:
		return intermediates(src, 1)
	}
	return 1, true
}

// control returns the length of a CSI sequence, which is ESC [ parameters intermediates final;
// false if src ends within it.
func control(src []byte) (int, bool) {
	i := 2
	for i < len(src) && src[i] >= 0x30 && src[i] <= 0x3f && i < maxSequence {
		i++
	}
	return intermediates(src, i)
}

// intermediates returns the end of a sequence whose bytes from i on are 0x20-0x2f and one final
// byte; false if src ends within it. A byte that cannot belong to a sequence ends it.
func intermediates(src []byte, i int) (int, bool) {
	for i < len(src) && src[i] >= 0x20 && src[i] <= 0x2f && i < maxSequence {
		i++
	}
	switch {
	case i >= maxSequence:
		return 1, true
	case i == len(src):
		return i, false
	case src[i] >= 0x30 && src[i] <= 0x7e:
		return i + 1, true
	}
	return i, true
}

// controlString returns the length of an OSC, DCS, SOS, PM or APC, up to BEL or ESC \; false if src
// ends within it. A newline ends it, too: a string may swallow its own line, no more.
func controlString(src []byte) (int, bool) {
	for i := 2; i < len(src); i++ {
		switch {
		case i >= maxSequence:
			return 1, true
		case src[i] == 0x07:
			return i + 1, true
		case src[i] == '\n':
			return i, true
		case src[i] == esc && i+1 == len(src):
			return len(src), false
		case src[i] == esc && src[i+1] == '\\':
			return i + 2, true
		case src[i] == esc: // begins another sequence; continuing would make the time quadratic
			return i, true
		}
	}
	return len(src), false
}
