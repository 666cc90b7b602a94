package legacy

import (
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/termsafe"
)

// shownRanges is how many ranges of line numbers are shown.
const shownRanges = 30

// shownLines is how many unknown lines are shown without --all.
const shownLines = 10

// WriteUnread reports the unknown lines: the first ones in full, the others by numbers; all shows
// all of them in full.
func WriteUnread(w io.Writer, path string, unread []Line, lines int, all bool) {
	if len(unread) == 0 {
		return
	}
	fmt.Fprintf(w, "%s: %d of %d lines were not understood:\n", path, len(unread), lines)
	shown := min(shownLines, len(unread))
	if all {
		shown = len(unread)
	}
	for _, line := range unread[:shown] {
		text := []rune(termsafe.OneLine(line.Text))
		fmt.Fprintf(w, "%6d: %s\n", line.Number, string(text[:min(len(text), 100)]))
	}
	if rest := unread[shown:]; len(rest) > 0 {
		fmt.Fprintf(w, "  also: %d lines (%s); --all shows them\n", len(rest), ranges(rest))
	}
}

// ranges writes line numbers in short, such as "3-7, 9".
func ranges(lines []Line) string {
	var words []string
	for i := 0; i < len(lines); {
		if len(words) == shownRanges {
			words = append(words, "...")
			break
		}
		k := i
		for k+1 < len(lines) && lines[k+1].Number == lines[k].Number+1 {
			k++
		}
		word := fmt.Sprint(lines[i].Number)
		if k > i {
			word += fmt.Sprintf("-%d", lines[k].Number)
		}
		words = append(words, word)
		i = k + 1
	}
	return strings.Join(words, ", ")
}
