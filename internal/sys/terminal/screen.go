package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"sshpace/internal/base/text"
)

// Screen is a terminal, or any other stream, on which a drawing of a few lines
// stays below everything else that is written.
type Screen struct {
	Width int // of the terminal; 0: none that can be redrawn

	mu    sync.Mutex
	w     io.Writer
	drawn int // lines of the drawing
}

// NewScreen draws on w, if it is a terminal. A Screen stays itself.
func NewScreen(w io.Writer, getenv func(string) string) *Screen {
	if s, is := w.(*Screen); is {
		return s
	}
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

// Draw replaces the drawing, at once so that nothing flickers; without lines nothing is
// left of it. Lines are cut at the edge: one that wraps could not be taken away again.
func (s *Screen) Draw(lines ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	drawing := s.erasure()
	for _, line := range lines {
		drawing += text.Clip(line, s.Width-1) + "\n"
	}
	if s.drawn = len(lines); drawing == "" {
		return nil
	}
	_, err := io.WriteString(s.w, drawing)
	return err
}

// Aside does something on the terminal beside us, such as asking a question: meanwhile nothing
// is written or drawn.
func (s *Screen) Aside(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.erase() // a terminal that is gone is noticed by what is written next
	do()
}

// erase takes the drawing off the screen.
func (s *Screen) erase() error {
	text := s.erasure()
	s.drawn = 0
	_, err := io.WriteString(s.w, text)
	return err
}

// erasure takes the drawing away, and what the terminal has echoed below it, such as ^C.
func (s *Screen) erasure() string {
	if s.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", s.drawn)
}

// Tell writes a line, or draws it, together with those below it, where something can be drawn.
func (s *Screen) Tell(line string, below ...string) {
	if s.Width > 0 {
		_ = s.Draw(append([]string{line}, below...)...)
		return
	}
	fmt.Fprintln(s, line)
}

// Notice writes a line about an interrupt. On a terminal without a drawing the
// cursor stands behind the ^C.
func (s *Screen) Notice(notice string) {
	s.mu.Lock()
	above := s.drawn == 0 && Is(s.w)
	s.mu.Unlock()
	if above {
		notice = "\n" + notice
	}
	fmt.Fprintln(s, strings.TrimRight(notice, "\n"))
}
