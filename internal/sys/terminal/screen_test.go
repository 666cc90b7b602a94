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

// covering is a cover that keeps what it is told.
type covering struct{ said bytes.Buffer }

func (c *covering) Written(p []byte) { c.said.Write(p) }
func (c *covering) Aside(do func())  { c.said.WriteString("<"); do(); c.said.WriteString(">") }

// What is written under a cover stands on the screen when the cover is gone; nothing is drawn
// there, and what needs the terminal gets it from the cover.
func TestCover(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{w: &out, Width: 10}
	_ = s.Draw("drawing")
	var c covering
	s.Cover(&c)
	_ = s.Draw("nothing")
	s.Notice("stopping")
	s.Aside(func() { c.said.WriteString("asked") })
	if got, want := out.String(), "drawing\n\r\x1b[1A\x1b[J"; got != want {
		t.Errorf("under the cover: %q, want %q", got, want)
	}
	s.Cover(nil)
	if got, want := out.String(), "drawing\n\r\x1b[1A\x1b[Jstopping\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := c.said.String(), "stopping\n<asked>"; got != want {
		t.Errorf("the cover knows %q, want %q", got, want)
	}
}
