package hostset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Fold writes names as one short expression that Expand reads back to the same set:
// node[001-003,007],web1. The result is sorted, duplicates vanish. Every run of digits in a name
// can become a range.
func Fold(names []string) string { return FoldSteps(names, 0) }

// FoldSteps is Fold that also writes steps, such as n[1-9/2], where at least autostep numbers make
// one, as nodeset --autostep does; 0 = never.
func FoldSteps(names []string, autostep int) string {
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
			folded = append(folded, b.render(shape, autostep))
		}
	}
	return strings.Join(folded, ",")
}

// Sorted orders names as Fold and nodeset -e do: by the text without their numbers, then by these.
func Sorted(names []string) []string {
	type key struct {
		shape   string
		numbers box
		name    string
	}
	keys := make([]key, len(names))
	for i, name := range names {
		keys[i].name = name
		keys[i].shape, keys[i].numbers, _ = dissect(name)
	}
	slices.SortStableFunc(keys, func(a, b key) int {
		if c := strings.Compare(a.shape, b.shape); c != 0 {
			return c
		}
		return compareBoxes(a.numbers, b.numbers)
	})
	sorted := make([]string, len(keys))
	for i, k := range keys {
		sorted[i] = k.name
	}
	return sorted
}

// hole marks the place of a number in a shape; no name that is dissected has it.
const hole = '\x00'

// box is a set of names of one shape: every combination of the numbers that each hole may have.
// Each list is sorted by byNumber and never empty.
type box [][]string

// dissect takes the numbers out of a name. It declines names that the grammar would not read back
// literally inside a larger expression.
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

// mergeBoxes unites boxes that differ in one hole only, the last hole first, until nothing changes.
// The boxes stay disjoint, so that no name is lost or added.
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

// byNumber orders digits by length and then by value, which keeps "01" apart from "1" and, among
// equally padded numbers, is the order of their values.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// render fills the holes of the shape.
func (b box) render(shape string, autostep int) string {
	var out strings.Builder
	i := 0
	for _, r := range []byte(shape) {
		if r != hole {
			out.WriteByte(r)
			continue
		}
		out.WriteString(renderNumbers(b[i], autostep))
		i++
	}
	return out.String()
}

// renderNumbers writes sorted numbers as [1-3,7]; a single one has no brackets.
func renderNumbers(numbers []string, autostep int) string {
	if len(numbers) == 1 {
		return numbers[0]
	}
	f := rangeFinder{numbers: numbers, autostep: autostep}
	f.fold()
	return "[" + strings.Join(f.spans, ",") + "]"
}

// rangeFinder finds the ranges in sorted numbers from left to right, as ClusterShell does: where a
// range ends, the distance to the next number is the step of the following range, if it has one.
type rangeFinder struct {
	numbers  []string
	autostep int // numbers that a step other than 1 needs, 0 = there is none
	spans    []string
}

func (f *rangeFinder) fold() {
	start, step := 0, uint64(0) // of the range that is open; 0 = not known yet
	for i := 1; i < len(f.numbers); i++ {
		next, fits := stepTo(padding(f.numbers[start]), f.numbers[i-1], f.numbers[i])
		if fits && (step == 0 || next == step) {
			step = next
			continue
		}
		switch {
		case f.isRange(start, i, step):
			f.add(start, i, step)
			start = i
		case fits: // the last number may begin another range
			f.singles(start, i-1)
			start = i - 1
		default:
			f.singles(start, i)
			start = i
		}
		if step = next; !fits {
			step = 0
		}
	}
	if end := len(f.numbers); f.isRange(start, end, step) {
		f.add(start, end, step)
	} else {
		f.singles(start, end)
	}
}

func (f *rangeFinder) isRange(start, end int, step uint64) bool {
	return step <= 1 || f.autostep > 0 && end-start >= f.autostep
}

func (f *rangeFinder) add(start, end int, step uint64) {
	text := f.numbers[start]
	if end-start > 1 {
		text += "-" + f.numbers[end-1]
		if step > 1 {
			text += fmt.Sprintf("/%d", step)
		}
	}
	f.spans = append(f.spans, text)
}

func (f *rangeFinder) singles(start, end int) {
	f.spans = append(f.spans, f.numbers[start:end]...)
}

// stepTo returns the difference of two numbers that can be in one range, which is padded to width
// (0 = not padded).
func stepTo(width int, a, b string) (uint64, bool) {
	if width == 0 && padding(b) > 0 || width > 0 && len(b) != width {
		return 0, false
	}
	x, _ := strconv.ParseUint(a, 10, 64) // digits, at most maxDigits
	y, _ := strconv.ParseUint(b, 10, 64)
	return y - x, y > x
}
