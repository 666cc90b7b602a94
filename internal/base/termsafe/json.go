package termsafe

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes a value as JSON on its own lines, with one Write. indent is written before each
// level; without it the value is one line.
func WriteJSON(w io.Writer, value any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(JSON(text.Bytes()))
	return err
}

// JSON returns a JSON text in which the characters that could harm a terminal, but that
// encoding/json leaves alone, are \u escapes: the meaning stays the same, since all of them are
// inside strings. It returns text itself when there are none.
func JSON(text []byte) []byte {
	if isPlain(text) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		if !Unsafe(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) { // RFC 8259 section 7
			out = appendHex(append(out, `\u`...), rune(unit), 4)
		}
	}
	return out
}

func isPlain(text []byte) bool {
	for _, c := range text {
		if c >= 0x7f {
			return false
		}
	}
	return true
}
