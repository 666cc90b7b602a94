// Package report writes a document as text for people, as Markdown, CSV and LaTeX, and a ranking as
// JSON for programs. It decides nothing.
package report

import (
	"bufio"
	"fmt"
	"io"

	"sshpace/internal/show/document"
)

// Text writes a document for a terminal.
func Text(w io.Writer, d *document.Document) error {
	out := bufio.NewWriter(w)
	for i, t := range d.Brief {
		if i > 0 {
			fmt.Fprintln(out)
		}
		for _, line := range t.Text(d.Columns) {
			fmt.Fprintln(out, line)
		}
	}
	return out.Flush()
}
