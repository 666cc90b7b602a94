package termsafe_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sshpace/internal/base/termsafe"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                         "plain",
		"  two\nlines\r\n and\ttabs \n": "two lines  and tabs",
		"\x1b[2J\x1b]0;title\x07gone":   "gone",
		"over\rwritten":                 `over\x0dwritten`,
		"c1 \u009b31m":                  `c1 \u009b31m`,
		"raw c1 \x9b31m":                `raw c1 \x9b31m`,
		"bidi \u202egnp.exe":            `bidi \u202egnp.exe`,
		"del \x7f bell \x07 nul \x00":   `del \x7f bell \x07 nul \x00`,
		"Größe 日本":                      "Größe 日本",
	} {
		if got := termsafe.OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("\x1b]8;;http://x\x1b\\link")
	f.Fuzz(func(t *testing.T, s string) {
		got := termsafe.OneLine(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e }) {
			t.Errorf("%q: %q", s, got)
		}
	})
}
