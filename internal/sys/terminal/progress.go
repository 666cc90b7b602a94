package terminal

import (
	"fmt"
	"io"
	"time"
)

// Progress says how far something has got, once it has taken a
// second and then every second.
type Progress struct {
	w    io.Writer
	what string
	next time.Time
}

// NewProgress counts what is called so.
func NewProgress(w io.Writer, what string) *Progress {
	return &Progress{w: w, what: what, next: time.Now().Add(time.Second)}
}

// Report is told how far it is.
func (p *Progress) Report(done, total int) {
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(time.Second)
		fmt.Fprintf(p.w, "sshpace: %d of %d %s\n", done, total, p.what)
	}
}
