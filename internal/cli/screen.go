package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screen is a terminal, or any other stream, on which a drawing of a few lines
// stays below everything else that is written.
type screen struct {
	width int // of the terminal; 0: none that can be redrawn

	mu    sync.Mutex
	w     io.Writer
	drawn int // lines of the drawing
}

func newScreen(w io.Writer, getenv func(string) string) *screen {
	return &screen{w: w, width: terminalWidth(w, getenv)}
}

// terminalWidth is 0 where w is no terminal that can be redrawn.
func terminalWidth(w io.Writer, getenv func(string) string) int {
	if !isTerminal(w) || getenv("TERM") == "dumb" {
		return 0
	}
	width, _, err := term.GetSize(int(fileOf(w).Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// Write takes the drawing away and writes p in its place.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.erase(); err != nil {
		return 0, err
	}
	return s.w.Write(p)
}

// draw replaces the drawing; without lines nothing is left of it. Lines are cut
// at the edge: one that wraps could not be taken away again.
func (s *screen) draw(lines ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.erase(); err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(s.w, clip(line, s.width-1)); err != nil {
			return err
		}
		s.drawn++
	}
	return nil
}

// erase takes the drawing off the screen, and what the terminal has echoed
// below it, such as ^C.
func (s *screen) erase() error {
	if s.drawn == 0 {
		return nil
	}
	_, err := fmt.Fprintf(s.w, "\r\x1b[%dA\x1b[J", s.drawn)
	s.drawn = 0
	return err
}

// clip cuts a text of one-column characters.
func clip(text string, width int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), max(0, width))])
}

// fold breaks words into lines of a width.
func fold(words []string, width int) []string {
	var lines []string
	for _, word := range words {
		last := len(lines) - 1
		if last >= 0 && len(lines[last])+2+len(word) <= width {
			lines[last] += "  " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// notice writes a line about an interrupt. On a terminal without a drawing the
// cursor stands behind the ^C.
func (s *screen) notice(text string) {
	s.mu.Lock()
	above := s.drawn == 0 && isTerminal(s.w)
	s.mu.Unlock()
	if above {
		text = "\n" + text
	}
	fmt.Fprintln(s, strings.TrimRight(text, "\n"))
}
