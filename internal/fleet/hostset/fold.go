package hostset

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Fold writes names as one short expression that Expand reads back to the
// same set: node[001-003,007],web1. The result is sorted, duplicates vanish.
// Every run of digits in a name can become a range.
func Fold(names []string) string {
	byShape := map[string][]box{}
	var verbatim []string
	for _, name := range sortedCopy(names) {
		shape, numbers, ok := dissect(name)
		if !ok {
			verbatim = append(verbatim, name)
			continue
		}
		byShape[shape] = append(byShape[shape], numbers)
	}
	folded := verbatim
	for _, shape := range slices.Sorted(maps.Keys(byShape)) {
		for _, b := range mergeBoxes(byShape[shape]) {
			folded = append(folded, b.render(shape))
		}
	}
	return strings.Join(folded, ",")
}

// hole marks the place of a number in a shape; no name that is dissected has it.
const hole = '\x00'

// box is a set of names of one shape: every combination of the numbers that
// each hole may have. Each list is sorted by byNumber and never empty.
type box [][]string

// dissect takes the numbers out of a name. It declines names that the grammar
// would not read back literally inside a larger expression.
func dissect(name string) (shape string, b box, ok bool) {
	if strings.ContainsAny(name, "[]\x00") {
		return "", nil, false
	}
	var s strings.Builder
	for name != "" {
		i := strings.IndexAny(name, "0123456789")
		if i < 0 {
			s.WriteString(name)
			break
		}
		s.WriteString(name[:i])
		digits := name[i : len(name)-len(strings.TrimLeft(name[i:], "0123456789"))]
		if len(digits) > maxDigits {
			s.WriteString(digits)
		} else {
			s.WriteByte(hole)
			b = append(b, []string{digits})
		}
		name = name[i+len(digits):]
	}
	return s.String(), b, true
}

// mergeBoxes unites boxes that differ in one hole only, the last hole first,
// until nothing changes. The boxes stay disjoint, so that no name is lost or added.
func mergeBoxes(boxes []box) []box {
	if len(boxes) == 0 || len(boxes[0]) == 0 {
		return boxes
	}
	for {
		before := len(boxes)
		for axis := len(boxes[0]) - 1; axis >= 0; axis-- {
			boxes = mergeAlong(boxes, axis)
		}
		if len(boxes) == before {
			return boxes
		}
	}
}

// mergeAlong unites the boxes that are equal in all holes but one.
func mergeAlong(boxes []box, axis int) []box {
	place := map[string]int{} // of the united box in merged
	var merged []box
	for _, b := range boxes {
		key := b.keyWithout(axis)
		i, ok := place[key]
		if !ok {
			place[key] = len(merged)
			b = slices.Clone(b)
			b[axis] = slices.Clone(b[axis])
			merged = append(merged, b)
			continue
		}
		merged[i][axis] = append(merged[i][axis], b[axis]...)
	}
	for _, b := range merged {
		slices.SortFunc(b[axis], byNumber)
	}
	slices.SortStableFunc(merged, compareBoxes)
	return merged
}

// compareBoxes orders boxes of one shape by their first numbers.
func compareBoxes(a, b box) int {
	for i := range a {
		if c := byNumber(a[i][0], b[i][0]); c != 0 {
			return c
		}
	}
	return 0
}

func (b box) keyWithout(axis int) string {
	var key strings.Builder
	for i, numbers := range b {
		if i != axis {
			key.WriteString(strings.Join(numbers, ","))
		}
		key.WriteByte(';')
	}
	return key.String()
}

// byNumber orders digits by length and then by value, which keeps "01" apart
// from "1" and, among equally padded numbers, is the order of their values.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// render fills the holes of the shape.
func (b box) render(shape string) string {
	var out strings.Builder
	i := 0
	for _, r := range []byte(shape) {
		if r != hole {
			out.WriteByte(r)
			continue
		}
		out.WriteString(renderNumbers(b[i]))
		i++
	}
	return out.String()
}

// renderNumbers writes sorted numbers as [1-3,7]; a single one has no brackets.
func renderNumbers(numbers []string) string {
	if len(numbers) == 1 {
		return numbers[0]
	}
	var spans []string
	for start := 0; start < len(numbers); {
		end := start + 1
		width := padding(numbers[start])
		for end < len(numbers) && follows(width, numbers[end-1], numbers[end]) {
			end++
		}
		text := numbers[start]
		if end-start > 1 {
			text += "-" + numbers[end-1]
		}
		spans = append(spans, text)
		start = end
	}
	return "[" + strings.Join(spans, ",") + "]"
}

// follows reports whether b continues a range that is padded to width (0 = not
// padded) after a. It works on the digits, so that 9 is followed by 10.
func follows(width int, a, b string) bool {
	if width == 0 && padding(b) > 0 || width > 0 && len(b) != width {
		return false
	}
	next := []byte(a)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i] != '9' {
			next[i]++
			return string(next) == b
		}
		next[i] = '0'
	}
	return "1"+string(next) == b
}
