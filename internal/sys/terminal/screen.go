package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/text"
)

// Screen is a terminal, or any other stream, with a drawing of a few lines that stays below all
// other text.
type Screen struct {
	Width int // of the terminal; 0: it cannot be redrawn

	mu    sync.Mutex
	w     io.Writer
	drawn int // lines of the drawing
	cover Cover
	held  []byte // written while it is covered
}

// Cover has the whole terminal for itself. What is written on the Screen meanwhile stands there
// when the cover is gone.
type Cover interface {
	// Written passes on such text.
	Written(p []byte)
	// Aside returns the terminal while do has it.
	Aside(do func())
}

// Cover gives the whole terminal to c; nil uncovers the Screen.
func (s *Screen) Cover(c Cover) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cover = c; c != nil {
		_ = s.erase()
		return
	}
	_, _ = s.w.Write(s.held)
	s.held = nil
}

// NewScreen draws on w, if it is a terminal. For a Screen it returns that Screen.
func NewScreen(w io.Writer, getenv func(string) string) *Screen {
	if s, is := w.(*Screen); is {
		return s
	}
	return &Screen{w: w, Width: Width(w, getenv)}
}

// Write erases the drawing and writes p in its place.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cover != nil {
		s.held = append(s.held, p...)
		s.cover.Written(p)
		return len(p), nil
	}
	if err := s.erase(); err != nil {
		return 0, err
	}
	return s.w.Write(p)
}

// Draw replaces the drawing, at once so that nothing flickers; without lines it erases it. Lines
// are cut at the edge: one that wraps could not be erased.
func (s *Screen) Draw(lines ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cover != nil {
		return nil
	}
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

// Aside does something else on the terminal, such as asking a question: meanwhile nothing is
// written or drawn.
func (s *Screen) Aside(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cover != nil {
		s.cover.Aside(do)
		return
	}
	_ = s.erase() // the next write notices a terminal that is gone
	do()
}

// erase erases the drawing.
func (s *Screen) erase() error {
	text := s.erasure()
	s.drawn = 0
	_, err := io.WriteString(s.w, text)
	return err
}

// erasure returns the codes that erase the drawing, and an echo of the terminal below it, such as
// ^C.
func (s *Screen) erasure() string {
	if s.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", s.drawn)
}

// Tell writes a line; where something can be drawn, it draws it together with the lines below.
func (s *Screen) Tell(line string, below ...string) {
	if s.Width > 0 {
		_ = s.Draw(append([]string{line}, below...)...)
		return
	}
	fmt.Fprintln(s, line)
}

// Notice writes a line about an interrupt. On a terminal without a drawing the cursor stands after
// the ^C.
func (s *Screen) Notice(notice string) {
	s.mu.Lock()
	above := s.drawn == 0 && s.cover == nil && Is(s.w)
	s.mu.Unlock()
	if above {
		notice = "\n" + notice
	}
	fmt.Fprintln(s, strings.TrimRight(notice, "\n"))
}

// Progress prints how far a task is, after one second and then every second.
type Progress struct {
	w    io.Writer
	what string
	next time.Time
}

// NewProgress returns a Progress for things called what, such as "hosts".
func NewProgress(w io.Writer, what string) *Progress {
	return &Progress{w: w, what: what, next: time.Now().Add(time.Second)}
}

// Report takes the present state; total is 0 where it is unknown.
func (p *Progress) Report(done, total int) {
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(time.Second)
		of := ""
		if total > 0 {
			of = fmt.Sprintf(" of %d", total)
		}
		fmt.Fprintf(p.w, "sshpace: %d%s %s\n", done, of, p.what)
	}
}
