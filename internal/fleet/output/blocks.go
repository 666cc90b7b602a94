package output

import (
	"bytes"
	"fmt"
	"strings"
)

// Blocks reads what the view of -b writes into its parts, for whoever draws them. It keeps a
// bounded part of each.
type Blocks struct {
	Groups []*Block
	Ends   []string // how hosts ended, and hints
	Left   int      // groups and ends that are not kept

	head int    // lines of the head of a group that have come
	now  *Block // the group whose text comes, nil where it is not kept
	line []byte
	cut  int // bytes of the line that were not kept
}

// Block is a group of hosts with the same output.
type Block struct {
	Title string // the hosts, and which output it is
	Text  []byte
	Left  int // bytes that are not kept
}

// What Blocks keeps, in bytes and in number.
const (
	mostBlockText = 16 << 10
	mostBlockLine = 2 << 10
	mostBlocks    = 100
)

// Write reads the next part.
func (b *Blocks) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		kept := min(len(part), mostBlockLine-len(b.line))
		b.line, b.cut, rest = append(b.line, part[:kept]...), b.cut+len(part)-kept, after
		if ended {
			b.end()
			b.line, b.cut = b.line[:0], 0
		}
	}
	return len(p), nil
}

// end reads a whole line. Only a line of a host has the mark of hosts.
func (b *Blocks) end() {
	line := string(b.line)
	if b.cut > 0 {
		line = fmt.Sprintf("%s… (%d bytes more)", strings.ToValidUTF8(line, ""), b.cut)
	}
	text, sent := strings.CutPrefix(line, hostMark)
	switch {
	case b.head == 0 && line == rule:
		b.head = 1
	case b.head == 1:
		b.head, b.now = 2, nil
		if len(b.Groups) == mostBlocks {
			b.Left++
			break
		}
		b.now = &Block{Title: line}
		b.Groups = append(b.Groups, b.now)
	case b.head == 2: // the second rule
		b.head = 0
	case sent || strings.HasPrefix(line, "["): // a note that some of it was not kept
		b.text(text)
	case len(b.Ends) < mostBlocks:
		b.Ends = append(b.Ends, line)
	default:
		b.Left++
	}
}

// text keeps a line of the group.
func (b *Blocks) text(line string) {
	switch {
	case b.now == nil:
	case len(b.now.Text)+len(line) > mostBlockText:
		b.now.Left += len(line) + b.cut + 1
	default:
		b.now.Text = append(append(b.now.Text, line...), '\n')
	}
}
