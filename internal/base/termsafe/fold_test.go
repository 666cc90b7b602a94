package termsafe

import (
	"slices"
	"testing"
)

// TestFold: lines are as wide as they may be, in characters, and no word is cut.
func TestFold(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"one two  three", []string{"one two", "three"}},
		{"größer größe", []string{"größer", "größe"}},
		{"äöü äöü", []string{"äöü äöü"}},
		{"a word-that-is-longer b", []string{"a", "word-that-is-longer", "b"}},
	} {
		if got := Fold(c.text, 7); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q", c.text, got)
		}
	}
}
