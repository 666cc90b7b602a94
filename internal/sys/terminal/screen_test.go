package terminal

import (
	"bytes"
	"testing"
)

// What is written between two drawings stays, and takes the drawing away with what the terminal has
// echoed below it.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{w: &out, Width: 10}
	_ = s.Draw("first line", "2")
	s.Notice("finishing")
	_ = s.Draw("next")
	_ = s.Draw()
	if got, want := out.String(), "first li…\n2\n\r\x1b[2A\x1b[Jfinishing\nnext\n\r\x1b[1A\x1b[J"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Elsewhere than on a terminal a notice has no empty line for the ^C.
func TestNoticeInAFile(t *testing.T) {
	var out bytes.Buffer
	NewScreen(&out, func(string) string { return "" }).Notice("finishing")
	if out.String() != "finishing\n" {
		t.Errorf("%q", out.String())
	}
}
