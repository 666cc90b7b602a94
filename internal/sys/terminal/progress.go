package terminal

import (
	"fmt"
	"io"
	"time"
)

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
