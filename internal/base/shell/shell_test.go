package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"sshpace/internal/base/shell"
)

// Nothing is quoted without need.
func TestWord(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "plain-1_2.3/4@5:6=7+8,9%": "plain-1_2.3/4@5:6=7+8,9%", "a b": "'a b'", "~": "'~'", "*": "'*'", "#": "'#'", "größe": "'größe'",
		"it's": `'it'\''s'`, "$(id)": "'$(id)'", "`id`": "'`id`'", "a\nb": "'a\nb'", `\`: `'\'`, "a;b": "'a;b'", "[a]:22": "'[a]:22'",
	} {
		if got := shell.Word(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// FuzzQuote: a POSIX shell gives every word back.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "plain", "a b", "it's", "$(id)", "`id`", "a\nb", "~", "*", `\`, "-n", "a=b", "\xff", "''"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.IndexByte(word, 0) >= 0 {
			return // no argument can hold it
		}
		out, err := exec.Command("sh", "-c", "printf %s "+shell.Line(word, word)+"; printf %s "+shell.Quote(word)).Output()
		if err != nil || string(out) != word+word+word {
			t.Errorf("%q came back as %q, %v", word, out, err)
		}
	})
}
