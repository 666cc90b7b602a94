package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// Screen is a terminal, or any other stream, on which a drawing of a few lines
// stays below everything else that is written.
type Screen struct {
	Width int // of the terminal; 0: none that can be redrawn

	mu    sync.Mutex
	w     io.Writer
	drawn int // lines of the drawing
}

// NewScreen draws on w, if it is a terminal.
func NewScreen(w io.Writer, getenv func(string) string) *Screen {
	return &Screen{w: w, Width: Width(w, getenv)}
}

// Write takes the drawing away and writes p in its place.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.erase(); err != nil {
		return 0, err
	}
	return s.w.Write(p)
}

// Draw replaces the drawing; without lines nothing is left of it. Lines are cut
// at the edge: one that wraps could not be taken away again.
func (s *Screen) Draw(lines ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.erase(); err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(s.w, Clip(line, s.Width-1)); err != nil {
			return err
		}
		s.drawn++
	}
	return nil
}

// erase takes the drawing off the screen, and what the terminal has echoed
// below it, such as ^C.
func (s *Screen) erase() error {
	if s.drawn == 0 {
		return nil
	}
	_, err := fmt.Fprintf(s.w, "\r\x1b[%dA\x1b[J", s.drawn)
	s.drawn = 0
	return err
}

// Clip cuts a text of one-column characters.
func Clip(text string, width int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), max(0, width))])
}

// Notice writes a line about an interrupt. On a terminal without a drawing the
// cursor stands behind the ^C.
func (s *Screen) Notice(text string) {
	s.mu.Lock()
	above := s.drawn == 0 && Is(s.w)
	s.mu.Unlock()
	if above {
		text = "\n" + text
	}
	fmt.Fprintln(s, strings.TrimRight(text, "\n"))
}
