package wildcard

import (
	"strings"
	"testing"
)

// TestMatchList: lists of patterns as ssh reads them, over-long ones included.
func TestMatchList(t *testing.T) {
	longest := strings.Repeat("a", TooLong-1)
	for _, c := range []struct {
		name, list string
		want       bool
	}{
		{"web1", "db*,web?", true}, {"web1", "web*,!web1", false}, {"web1", "!web1,web*", false}, {"web1", "!db", false},
		{"web1", "Web1", false}, {"", "", false}, {"", "*", true}, {"web1", "web1,", true},
		{longest, longest, true}, {longest, "!" + longest + ",*", false},
		{longest + "a", longest + "a", false}, {"web1", "web1," + longest + "a", false},
	} {
		if got := MatchList(c.name, c.list); got != c.want {
			t.Errorf("%.20q in %.20q: %v", c.name, c.list, got)
		}
	}
	if !MatchListFold("web1", "WEB*") || MatchListFold("web1", "web*,!WEB1") {
		t.Error("case counts")
	}
}
