package shell

import (
	"strings"
	"testing"
)

// TestStream: words are found wherever the stream is cut, and no byte of output is lost or late.
func TestStream(t *testing.T) {
	const m = mark("ABCABD")
	text := "ABCAB" + string(m) + "b" + string(m) + "\nout ABC\n" + string(m) + "x" + string(m) + "3 /a b" + string(m) + "\nAB" + string(m) + "e1 /" + string(m) + "\n" + strings.Repeat("ABC", 5)
	want := "ABCAB<b>out ABC\n" + string(m) + "x<3 /a b>AB<e1 />" + strings.Repeat("ABC", 4)
	for cut := range len(text) {
		for second := cut; second < len(text); second++ {
			s, got := stream{mark: m}, ""
			for _, data := range []string{text[:cut], text[cut:second], text[second:]} {
				for rest := []byte(data); len(rest) > 0; {
					var out []byte
					var w *word
					out, w, rest = s.next(rest)
					got += string(out)
					switch {
					case w == nil:
					case w.began:
						got += "<b>"
					case w.died:
						got += "<e1 " + w.directory + ">"
					default:
						got += "<3 " + w.directory + ">"
					}
				}
			}
			if got+string(s.held) != want+"ABC" {
				t.Fatalf("cut at %d and %d: %q, held %q; want %q", cut, second, got, s.held, want)
			}
		}
	}
	s := stream{mark: m}
	if out, w, rest := s.next([]byte(string(m) + strings.Repeat("x", longest))); w != nil || string(out)+string(rest) != string(m)+strings.Repeat("x", longest) {
		t.Error("a mark without an end holds output")
	}
}
