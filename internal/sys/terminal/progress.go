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

// Report is told how far it is; total is 0 where nobody knows it.
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
