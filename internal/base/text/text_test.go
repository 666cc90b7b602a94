package text_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sshpace/internal/base/text"
)

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "日本": 4, "e\u0301": 1, "…": 1, "±": 1, "\x1b[31mred\x1b[0m": 3, "😀": 2} {
		if got := text.Width(s); got != want {
			t.Errorf("%q takes %d columns, want %d", s, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 4, "日…"}, {"abc", 1, "…"}, {"abc", 0, ""}, {"abc", -1, ""}, {"ab \x1b[31mred\x1b[0m end", 5, "ab \x1b[31mr…"}, {"ab \x1b[31mred\x1b[0m", 6, "ab \x1b[31mred\x1b[0m"}} {
		if got := text.Clip(c.s, c.width); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.s, c.width, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		prefix, s string
		width     int
		want      []string
	}{
		{"", "one two three", 8, []string{"one two", "three"}},
		{"do  ", "one two three", 9, []string{"do  one", "    two", "    three"}},
		{"do  ", "a verylongword", 10, []string{"do  a", "verylongword"}},
		{"", "off by 42 % of it", 8, []string{"off by", "42 % of", "it"}},
		{"", text.Whole("ssh -o a=b host") + " x", 8, []string{"ssh -o a=b host", "x"}},
		{"  ", "", 8, []string{""}},
	} {
		if got := text.Wrap(c.prefix, c.s, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.s, got, c.want)
		}
	}
}

// No word is lost, and no line is wider than it has to be.
func TestWrapKeepsWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.StringMatching(`[a-z日%]{1,12}`)).Draw(t, "words"), " ")
		prefix, width := strings.Repeat(" ", rapid.IntRange(0, 8).Draw(t, "prefix")), rapid.IntRange(10, 40).Draw(t, "width")
		lines := text.Wrap(prefix, s, width)
		if got, want := strings.Fields(strings.Join(lines, " ")), strings.Fields(s); !slices.Equal(got, want) {
			t.Fatalf("%q became %q", s, lines)
		}
		for _, line := range lines {
			if words := strings.Fields(line); text.Width(line) > width && len(words) > 1 && !strings.Contains(line, "%") {
				t.Fatalf("%q has %d columns of %d", line, text.Width(line), width)
			}
		}
	})
}

func TestTable(t *testing.T) {
	table := text.Table{
		Columns: []text.Column{{Head: "host", Fit: text.Cut}, {Head: "time\ns", Right: true}, {Head: "last", Fit: text.Cut}},
		Rows:    [][]string{{"web1", "0.21", "up 3 days, and much more"}, {"日本-database.example.com", "10.20"}},
	}
	got := table.Lines(0)
	for i, line := range got {
		if text.Width(line) > 60 || strings.TrimRight(line, " ") != line {
			t.Errorf("line %d: %q", i, line)
		}
	}
	if got[1] != "host                           s  last" || got[3] != "日本-database.example.com  10.20" {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	for _, width := range []int{40, 24, 11} {
		for _, line := range table.Lines(width) {
			if text.Width(line) > width {
				t.Errorf("%d columns of %d: %q", text.Width(line), width, line)
			}
		}
	}
}

// A name that is to be typed is never cut.
func TestTableAbove(t *testing.T) {
	table := text.Table{Columns: []text.Column{{Fit: text.Above}, {Right: true}}, Rows: [][]string{{"short", "1"}, {"a-name-that-is-long", "2"}}}
	if got, want := table.Lines(12), []string{"short      1", "a-name-that-is-long", "           2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
