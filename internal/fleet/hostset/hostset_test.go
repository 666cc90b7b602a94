package hostset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/wildcard"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	tests := []struct{ text, want string }{
		{"web1", "web1"},
		{"n[1-3]", "n1 n2 n3"},
		{"n[001-003,007]", "n001 n002 n003 n007"},
		{"n[1-9/2]", "n1 n3 n5 n7 n9"},
		{"n[09-11]", "n09 n10 n11"},
		{"n[9-11]", "n9 n10 n11"},
		{"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
		{"n[1-2][3-4]", "n13 n14 n23 n24"},
		{"[1-3]", "1 2 3"},
		{"n[ 1 - 2 ]", "n1 n2"},
		{"b,a,b", "b a"},
		{"a b\tc\n", "a b c"},
		{"a , b", "a b"},
		{"n[1-4]!n2", "n1 n3 n4"},
		{"n[1-4] ! n[2-3]", "n1 n4"},
		{"a,b&b,c", "b c"},
		{"a,b^b,c", "a c"},
		{"n[1-3]&n[2-5]!n2", "n3"},
		{"a^a", ""},
		{"", ""},
		{"root@n[1-2]:2222", "root@n1:2222 root@n2:2222"},
		{"[::1]:22,fe80::[1-2]", "[::1]:22 fe80::1 fe80::2"},
		{"ssh://u@n[1-2]:22", "ssh://u@n1:22 ssh://u@n2:22"},
		{"n[1-2,5-9/2]", "n1 n2 n5 n7 n9"},
	}
	for _, tt := range tests {
		got, err := Expand(tt.text, Options{})
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("Expand(%q) = %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	texts := []string{
		",a", "a,", "a,,b", "a!", "!a", "a!!b", "&", "n[1", "n1]", "n[[1]]", "n[1]]", "n[]", "n[1,]", "n[a-b]", "n[3-1]",
		"n[1-3/0]", "n[1/2]", "n[1-]", "n[-1]", "n[1-2-3]", "n[0x1]", "n[1-010]", "n[01-100]", "n[00-3]", "n[+1]",
		"n[1-9999999]", "n[1-2000]x[1-2000]", "n[1-1234567890123456789]", "@none", "@", "@*", "a*",
		"n[0-999999999999999999]a[0-999999999999999999]b[0-999999999999999999]",
	}
	for _, text := range texts {
		got, err := Expand(text, Options{})
		if _, ok := errors.AsType[*SyntaxError](err); !ok {
			t.Errorf("Expand(%q) = %q, %v; want a *SyntaxError", text, got, err)
		}
	}
}

func TestMaxBoundsTheWholeSet(t *testing.T) {
	for _, text := range []string{"a[1-10]", "a[1-4],b[1-4]", "x!a[1-10]", "x^a[1-10]"} {
		if got, err := Expand(text, Options{Max: 5}); err == nil {
			t.Errorf("Expand(%q) at most 5 = %q", text, got)
		}
	}
	if _, err := Expand("a[1-5]", Options{Max: 5}); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
}

// Thousands of operands cost linear time and little stack.
func TestLongLists(t *testing.T) {
	var list []string
	for i := range 20_000 {
		list = append(list, fmt.Sprintf("host%d.example", i*7))
	}
	got, err := Expand(strings.Join(list, ","), Options{})
	if err != nil || !slices.Equal(got, list) {
		t.Errorf("%d names, %v; want %d", len(got), err, len(list))
	}
}

func groupsOf(t *testing.T, text string) Groups {
	t.Helper()
	g, err := ReadGroups(strings.NewReader(text), "groups")
	if err != nil {
		t.Fatal(err)
	}
	return Sources{"": g, "last": lastRun{}}
}

type lastRun struct{}

func (lastRun) Group(_, name string) ([]string, error) {
	if name != "failed" {
		return nil, errors.New("no such result")
	}
	return []string{"web2", "root@db1:2222"}, nil
}

func (lastRun) Names(string) ([]string, error) { return []string{"failed"}, nil }

func TestGroups(t *testing.T) {
	opt := Options{
		Groups: groupsOf(t, "# classic\nweb: web[1-3]\n\ndb: db1\nall: @web,@db\nrack1: a1\nrack2: a2\nrack2: a3\nempty:\nloop: @pool\npool: @loop\n"),
		Known:  func() ([]string, error) { return []string{"web1", "web9", "mail"}, nil },
	}
	tests := []struct{ text, want string }{
		{"@web", "web1 web2 web3"},
		{"@all!web2", "web1 web3 db1"},
		{"@web&@all", "web1 web2 web3"},
		{"@rack[1-2]", "a1 a2 a3"},
		{"@rack*", "a1 a2 a3"},
		{"@empty", ""},
		{"@last:failed", "web2 root@db1:2222"},
		{"@all!@last:failed", "web1 web3 db1"},
		{"web*", "web1 web9"},
		{"?ail,x", "mail x"},
		{"@we?!web1", "web2 web3"},
	}
	for _, tt := range tests {
		got, err := Expand(tt.text, opt)
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("Expand(%q) = %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{"@none", "@loop", "@*", "@none*", "@other:x", "@last:none", "nothing*"} {
		if got, err := Expand(text, opt); err == nil {
			t.Errorf("Expand(%q) = %q, want an error", text, got)
		}
	}
}

// Groups that double at each level must not double the work.
func TestGroupsOfGroupsStaySmall(t *testing.T) {
	var text strings.Builder
	text.WriteString("g0: a[1-3]\n")
	for i := range 200 {
		fmt.Fprintf(&text, "g%d: @g%d,@g%d\n", i+1, i, i)
	}
	got, err := Expand("@g200", Options{Groups: groupsOf(t, text.String())})
	if err != nil || len(got) != 3 {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAllGroupsWithoutKnownNames(t *testing.T) {
	got, err := Expand("@*,*2", Options{Groups: groupsOf(t, "web: web[1-2]\ndb: db2\n")})
	if diff := cmp.Diff([]string{"web1", "web2", "db2"}, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

func TestReadGroupsNamesTheLine(t *testing.T) {
	_, err := ReadGroups(strings.NewReader("web: a\n\nno colon here\n"), "my.groups")
	if err == nil || !strings.HasPrefix(err.Error(), "my.groups:3: ") {
		t.Errorf("error = %v", err)
	}
}

func TestFold(t *testing.T) {
	tests := []struct{ names, want string }{
		{"", ""},
		{"n1", "n1"},
		{"n1 n2 n3", "n[1-3]"},
		{"n001 n002 n003 n007", "n[001-003,007]"},
		{"n2 n1 n10 n2", "n[1-2,10]"},
		{"n9 n10", "n[9-10]"},
		{"n98 n99 n100", "n[98-100]"},
		{"n099 n100 n999 n1000", "n[099-100,999-1000]"},
		{"n1 n01 n02", "n[1,01-02]"},
		{"a1b1 a1b2 a2b1 a2b2", "a[1-2]b[1-2]"},
		{"a1b1 a2b2", "a1b1,a2b2"},
		{"10.0.0.1 10.0.0.2 10.0.1.1", "10.0.0.[1-2],10.0.1.1"},
		{"z1 a1 m", "a1,m,z1"},
		{"[::1]:22 [::2]:22", "[::1]:22,[::2]:22"},
		{"root@n1:22 root@n2:22", "root@n[1-2]:22"},
	}
	for _, tt := range tests {
		if got := Fold(strings.Fields(tt.names)); got != tt.want {
			t.Errorf("Fold(%q) = %q, want %q", tt.names, got, tt.want)
		}
	}
}

func drawNames(t *rapid.T) []string {
	name := rapid.StringMatching(`(root@)?(n|web|[::1]x|10\.0\.|r[0-9]{1,2}c)([0-9]{1,4}|[0-9]{19,21}|0{1,3}[0-9]{0,2})?(-ib[0-9]|:22|\.example)?`)
	return rapid.SliceOfN(name.Filter(func(s string) bool { return s != "" && !strings.ContainsAny(s, "[]") }), 0, 60).Draw(t, "names")
}

func TestFoldThenExpandIsTheSameSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := sortedCopy(drawNames(t))
		folded := Fold(want)
		got, err := Expand(folded, Options{})
		if err != nil {
			t.Fatalf("Expand(%q): %v", folded, err)
		}
		if diff := cmp.Diff(want, sortedCopy(got), cmp.Transformer("empty", func(s []string) string { return strings.Join(s, " ") })); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", folded, diff)
		}
		if len(got) != len(want) {
			t.Fatalf("%q gives %d names, want %d", folded, len(got), len(want))
		}
	})
}

func TestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringMatching(`[ab*?]{0,8}`).Draw(t, "glob")
		name := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "name")
		if got, want := wildcard.Match(name, glob), naiveMatch(glob, name); got != want {
			t.Fatalf("match(%q, %q) = %v, want %v", glob, name, got, want)
		}
	})
}

func naiveMatch(glob, name string) bool {
	switch {
	case glob == "":
		return name == ""
	case glob[0] == '*':
		return naiveMatch(glob[1:], name) || name != "" && naiveMatch(glob, name[1:])
	}
	return name != "" && (glob[0] == '?' || glob[0] == name[0]) && naiveMatch(glob[1:], name[1:])
}

// Any text is either an error or a set whose fold reads back to it.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"n[1-3]", "a,b!c", "r[1-2]n[01-03/2]", "[::1]:22", "@g", "a*", "n[1-2", "a^b&c", "n[1]2[3]", "x y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Expand(text, Options{Max: 2000})
		if err != nil {
			return
		}
		again, err := Expand(Fold(got), Options{Max: 2000})
		if err != nil || !slices.Equal(sortedCopy(again), sortedCopy(got)) {
			t.Fatalf("Expand(%q) = %q, folded %q reads as %q, %v", text, got, Fold(got), again, err)
		}
	})
}

func BenchmarkFold(b *testing.B) {
	list, err := Expand("r[1-20]n[001-500]", Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got := Fold(list); got != "r[1-20]n[001-500]" {
			b.Fatal(got)
		}
	}
}

// Other programs read brackets in other ways; the names come in the same order, and no more of them
// than are asked for.
func TestRanges(t *testing.T) {
	mistake := errors.New("want letters")
	vowels := func(body string) ([]Span, error) {
		switch body {
		case "all":
			return []Span{{Hi: 4, Step: 1, Letters: "aeiou"}}, nil
		case "two":
			return []Span{{Lo: 9, Hi: 10, Step: 1, Width: 2}}, nil
		case "itself":
			return nil, nil
		}
		return nil, mistake
	}
	for text, want := range map[string]string{"x": "x", "[all]": "a e i o u", "n[two]m[all]": "n09ma n09me n09mi n09mo n09mu n10ma n10me n10mi n10mo n10mu", "[itself]:22": "[itself]:22"} {
		if got, err := Ranges(text, vowels, 10); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	if got, err := Ranges("[all][two]", vowels, 9); err == nil {
		t.Errorf("more names than are asked for: %q", got)
	}
	if _, err := Ranges("n[x]", vowels, 9); !errors.Is(err, mistake) {
		t.Errorf("%v does not hold what the reader of brackets said", err)
	}
}
