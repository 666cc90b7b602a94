package output

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
)

// edit is one line of a difference.
type edit struct {
	kind byte // ' ' in both, '-' of the old text only, '+' of the new one only
	text string
}

// maxEdits bounds the work: texts that differ in more lines are shown as they are.
const maxEdits = 1000

// diffLines is the shortest way from one text to another, by the greedy algorithm
// of Myers (An O(ND) Difference Algorithm, 1986). ok is false beyond maxEdits.
func diffLines(from, to []string) (edits []edit, ok bool) {
	start := 0
	for start < len(from) && start < len(to) && from[start] == to[start] {
		start++
	}
	end := 0
	for end < len(from)-start && end < len(to)-start && from[len(from)-1-end] == to[len(to)-1-end] {
		end++
	}
	middle, ok := shortest(from[start:len(from)-end], to[start:len(to)-end])
	if !ok {
		return nil, false
	}
	for _, line := range from[:start] {
		edits = append(edits, edit{' ', line})
	}
	edits = append(edits, middle...)
	for _, line := range from[len(from)-end:] {
		edits = append(edits, edit{' ', line})
	}
	return edits, true
}

// shortest finds the fewest edits: reach[k] is how far from can be followed on
// diagonal k with d of them.
func shortest(from, to []string) ([]edit, bool) {
	reach := map[int]int{1: 0}
	var steps []map[int]int
	for d := 0; d <= min(len(from)+len(to), maxEdits); d++ {
		before := make(map[int]int, 2*d+1)
		for k, x := range reach {
			before[k] = x
		}
		steps = append(steps, before)
		for k := -d; k <= d; k += 2 {
			x := reach[k-1] + 1
			if k == -d || k != d && reach[k-1] < reach[k+1] {
				x = reach[k+1]
			}
			for x < len(from) && x-k < len(to) && from[x] == to[x-k] {
				x++
			}
			reach[k] = x
			if x >= len(from) && x-k >= len(to) {
				return walk(from, to, steps), true
			}
		}
	}
	return nil, false
}

// walk goes back from the end by what each step could reach.
func walk(from, to []string, steps []map[int]int) []edit {
	var edits []edit
	x, y := len(from), len(to)
	for d := len(steps) - 1; d >= 0; d-- {
		reach, k := steps[d], x-y
		last := k - 1
		if k == -d || k != d && reach[k-1] < reach[k+1] {
			last = k + 1
		}
		oldX := reach[last]
		oldY := oldX - last
		for x > oldX && y > oldY && x > 0 && y > 0 {
			x, y = x-1, y-1
			edits = append(edits, edit{' ', from[x]})
		}
		switch {
		case d == 0:
		case x == oldX:
			y--
			edits = append(edits, edit{'+', to[y]})
		default:
			x--
			edits = append(edits, edit{'-', from[x]})
		}
	}
	slices.Reverse(edits)
	return edits
}

// around is how many lines in common are shown beside a difference.
const around = 2

// writeDiff writes the edits with some lines around them, each with the mark of
// hosts; what is left out is counted.
func writeDiff(w io.Writer, edits []edit) error {
	b := bufio.NewWriter(w)
	near := make([]bool, len(edits))
	for i, e := range edits {
		if e.kind != ' ' {
			for j := max(0, i-around); j <= min(len(edits)-1, i+around); j++ {
				near[j] = true
			}
		}
	}
	for i := 0; i < len(edits); i++ {
		if near[i] || (i == 0 || near[i-1]) && (i+1 == len(edits) || near[i+1]) { // one line takes no more room
			fmt.Fprintf(b, "%s%c %s\n", hostMark, edits[i].kind, edits[i].text)
			continue
		}
		hidden := i
		for i+1 < len(edits) && !near[i+1] {
			i++
		}
		fmt.Fprintf(b, "[%d lines in common]\n", i+1-hidden)
	}
	return b.Flush()
}

// maxDiff is how large a text may be that is compared line by line, in bytes.
const maxDiff = 4 << 20

// lines reads a group's text as it is shown; ok is false if it is too large.
func (g *gather) lines(gr *group) (lines []string, ok bool, err error) {
	if gr.content.size > maxDiff || gr.content.dropped > 0 {
		return nil, false, nil
	}
	var text bytes.Buffer
	w := bufio.NewWriter(&text)
	if err := g.writeContent(w, gr); err != nil {
		return nil, false, err
	}
	w.Flush() // a buffer takes all
	for line := range bytes.Lines(text.Bytes()) {
		lines = append(lines, string(bytes.TrimSuffix(bytes.TrimPrefix(line, []byte(hostMark)), []byte("\n"))))
	}
	return lines, true, nil
}
