package watch

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
)

// row is a line of each of two hosts, and the sign between: | where the lines differ, < or > where
// one has none, @ before a part that is shown, with the numbers of its first lines.
type row struct {
	lines [2]string
	sign  byte
}

// maxCompared is how much of a host is compared, in bytes.
const maxCompared = 4 << 20

// compare opens the differences of the two hosts that are marked, or of a marked one and that with
// the cursor.
func (v *view) compare() {
	var two []*hostView
	for _, h := range v.hosts {
		if h.marked {
			two = append(two, h)
		}
	}
	if h := v.host(); len(two) == 1 && h != nil && h != two[0] {
		two = append(two, h)
	}
	if len(two) != 2 {
		v.notice = "mark two hosts with Space; then d compares them"
		return
	}
	names := two[0].name + " and " + two[1].name
	edits := diff.Diff("", v.text(two[0]), "", v.text(two[1]))
	if len(edits) == 0 {
		v.notice = names + " have sent the same"
		return
	}
	if max(two[0].content.Size, two[1].content.Size) > maxCompared {
		names += ", the first " + unit.Bytes(maxCompared).String()
	}
	all := rows(edits)
	v.open(numbered{func() string { return names }, func() int { return len(all) }, func(i, skip, width int) (string, string) { return all[i].text(skip, width) }})
}

// text is what a host has sent, as it is shown: standard output, then standard error.
func (v *view) text(h *hostView) []byte {
	s := &sent{view: v, host: h}
	var streams [2]bytes.Buffer
	to := &streams[0]
	for at := int64(0); at < maxCompared; {
		kind, line, next := s.piece(at)
		if next == at || kind == ofEnd {
			break
		}
		switch kind {
		case ofStdout:
			to = &streams[0]
		case ofStderr:
			to = &streams[1]
		}
		to.WriteString(safe(line) + "\n")
		at = next
	}
	return slices.Concat(streams[0].Bytes(), streams[1].Bytes())
}

// rows reads differences in the form of diff -u.
func rows(edits []byte) (all []row) {
	var only [2][]string // lines of one host, since the last one of both
	pair := func() {
		for i := range max(len(only[0]), len(only[1])) {
			r := row{sign: '|'}
			for side, sign := range []byte{'>', '<'} { // the sign without the line
				if i < len(only[side]) {
					r.lines[side] = only[side][i]
				} else {
					r.sign = sign
				}
			}
			all = append(all, r)
		}
		only = [2][]string{}
	}
	lines := strings.Split(strings.TrimSuffix(string(edits), "\n"), "\n")
	for _, line := range lines[3:] { // the first ones name files
		switch line[0] {
		case '-':
			only[0] = append(only[0], line[1:])
			continue
		case '+':
			only[1] = append(only[1], line[1:])
			continue
		}
		pair()
		if line[0] == '@' {
			before, after, _ := strings.Cut(strings.Trim(line, "@ -"), " +")
			all = append(all, row{[2]string{"line " + number(before), "line " + number(after)}, '@'})
		} else {
			all = append(all, row{[2]string{line[1:], line[1:]}, ' '})
		}
	}
	pair()
	return all
}

// number is the first line of a range.
func number(lines string) string { n, _, _ := strings.Cut(lines, ","); return n }

// text is the row in two columns.
func (r row) text(skip, width int) (line, color string) {
	switch r.sign {
	case '@':
		color = "2"
	case '|', '<', '>':
		color = "31"
	}
	half := 0
	if width > 0 {
		half = max(1, (width-3)/2)
	}
	left := text.Pad(part(r.lines[0], skip, half), half)
	return left + " " + string(r.sign) + " " + part(r.lines[1], skip, half), color
}
