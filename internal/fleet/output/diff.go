package output

import (
	"bufio"
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// maxDiff is the largest text that is compared line by line, in bytes.
const maxDiff = 4 << 20

// text returns a group's text as shown; nil if it is too large to be compared.
func (g *gather) text(gr *group) ([]byte, error) {
	if gr.content.Size > maxDiff || gr.content.Dropped > 0 {
		return nil, nil
	}
	text := bytes.NewBuffer([]byte{}) // not nil, even of hosts that sent nothing
	w := bufio.NewWriter(text)
	err := g.writeContent(w, gr)
	w.Flush() // a buffer takes all
	return text.Bytes(), err
}

// edits returns the differences of a group from the first one; nil: it is to be shown whole.
func (g *gather) edits(first []byte, gr *group, place int) ([]byte, error) {
	if first == nil || place == 0 {
		return nil, nil
	}
	text, err := g.text(gr)
	if text == nil {
		return nil, err
	}
	return differences(first, text), err
}

// differences returns the differences between two texts as they are shown, in the form of diff -u,
// each line with the mark of hosts; nil if both have lines, and none in common.
func differences(from, to []byte) []byte {
	var out []byte
	number, common := 0, false
	for line := range bytes.Lines(diff.Diff("", from, "", to)) {
		if number++; number <= 3 { // the names of files
			continue
		}
		kind := line[0]
		if text, theirs := bytes.CutPrefix(line[1:], []byte(hostMark)); theirs {
			out = append(append(append(out, hostMark...), kind, ' '), text...)
		} else {
			out = append(out, line...) // positions of the next lines
		}
		common = common || kind == ' '
	}
	if !common && len(to) > 0 {
		return nil
	}
	return out
}
