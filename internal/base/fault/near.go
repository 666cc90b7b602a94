package fault

import (
	"cmp"
	"slices"
	"strings"
)

// most is the number of names shown as suggestions.
const most = 3

// NearNames returns up to three of the names that are nearest to the typed one, best first: those
// that differ by a few letters, then those that contain it. Case does not matter, and a name@domain
// (RFC 4251, section 6) is as near as its name.
func NearNames(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	type candidate struct {
		name  string
		edits int
	}
	var found []candidate
	for _, name := range names {
		lower := strings.ToLower(name)
		local, _, _ := strings.Cut(lower, "@")
		edits := min(distance(typed, lower), distance(typed, local))
		switch {
		case edits <= max(1, min(3, len(typed)/3)):
		case len(typed) > 2 && strings.Contains(lower, typed):
			edits += len(typed) // after the typing errors
		default:
			continue
		}
		found = append(found, candidate{name, edits})
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.edits, b.edits) })
	var out []string
	for _, c := range found[:min(most, len(found))] {
		out = append(out, c.name)
	}
	return out
}

// Near returns a hint that lists the names that may have been meant, each after prefix; if none is
// near, it returns otherwise.
func Near(prefix, typed string, names []string, otherwise string) string {
	found := NearNames(typed, names)
	if len(found) == 0 {
		return otherwise
	}
	for i, name := range found {
		found[i] = prefix + name
	}
	return "did you mean " + strings.Join(found, " or ")
}

// distance counts the letters to insert, delete, replace or swap with the next to turn a into b
// (optimal string alignment).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
