package knownhosts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestUnreadable(t *testing.T) {
	key := edLine(1)
	file := writeFile(t, strings.Join([]string{
		"good " + key,                         // 1
		"",                                    //
		"# comment",                           //
		"nokey",                               // 4
		"@sometimes a " + key,                 // 5
		"@revoked @revoked a " + key,          // 6
		"|1|AAAA|BBBB " + key,                 // 7
		"a ssh-rsa " + strings.Fields(key)[1], // 8
		"a ssh-ed25519 !!!!",                  // 9
		"crlf " + key + "\r",                  // 10
		"a " + key[:40],                       // 11
		"@revoked",                            // 12
		"\t  indented\t" + key + "\tcomment",  // 13
		"crs " + key + "\r\r\r",               // 14
	}, "\n"))
	x := Open(file)
	var lines []int
	for _, bad := range x.Unreadable() {
		if bad.File != file || bad.Reason == "" {
			t.Errorf("incomplete: %+v", bad)
		}
		lines = append(lines, bad.Line)
	}
	if diff := cmp.Diff([]int{4, 5, 6, 7, 8, 9, 11, 12}, lines); diff != "" {
		t.Error(diff)
	}
	for name, line := range map[string]int{"good": 1, "crlf": 10, "indented": 13, "crs": 14} {
		if got := x.Lookup(name, 22); len(got) != 1 || got[0].Line != line {
			t.Errorf("%s: %+v, want line %d", name, got, line)
		}
	}
	if got := x.Lookup("indented", 0)[0].Comment; got != "comment" {
		t.Errorf("comment %q", got)
	}
}

// FuzzParseLine: no input may panic, a line that is read must survive being
// written and read again, and every line is counted.
func FuzzParseLine(f *testing.F) {
	key := edLine(1)
	for _, seed := range []string{"a " + key, "@revoked *,!b " + key + " x\r", HashName("a") + "\t" + key, "@cert-authority\t", "|1||", "a b c", "\x00", "@ @ @", "# x", "!"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		newTable("f", text).find("a")
		one, _, _ := strings.Cut(text, "\n")
		l, kind, err := parseLine(one, 7)
		if (kind == lineBad) != (err != nil) {
			t.Fatalf("kind %d with error %v", kind, err)
		}
		if kind != lineEntry {
			return
		}
		again, kind, err := parseLine(l.String(), 7)
		if kind != lineEntry {
			t.Fatalf("%q is written as %q, which is unreadable: %v", one, l.String(), err)
		}
		if diff := cmp.Diff(l, again, cmp.AllowUnexported(line{}, hashedName{}), cmpopts.IgnoreFields(line{}, "text")); diff != "" {
			t.Fatalf("%q is written as %q:\n%s", one, l.String(), diff)
		}
	})
}

func TestLineNumbers(t *testing.T) {
	text := "\n# c\na " + edLine(1) + "\nbroken\n\nb " + edLine(2)
	x := Open(writeFile(t, text))
	if a, b := x.Lookup("a", 0), x.Lookup("b", 0); a[0].Line != 3 || b[0].Line != 6 {
		t.Errorf("lines %d and %d, want 3 and 6", a[0].Line, b[0].Line)
	}
	if bad := x.Unreadable(); len(bad) != 1 || bad[0].Line != 4 {
		t.Errorf("unreadable: %v, want line 4", bad)
	}
}

func TestMatchPattern(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		want          bool
	}{
		{"", "", true}, {"", "*", true}, {"", "?", false}, {"a", "", false},
		{"ab", "*a*b*", true}, {"abc", "a?c", true}, {"abbbc", "a*c", true}, {"abbbd", "a*c", false},
		{"aXbXc", "a*X*c", true}, {"a", "**", true}, {"a", "*?", true}, {"", "*?", false},
		{strings.Repeat("a", 2000), strings.Repeat("*a", 40) + "b", false}, // exponential when done by recursion
	} {
		if got := matchPattern(c.name, c.pattern); got != c.want {
			t.Errorf("matchPattern(%.20q, %.20q) = %v", c.name, c.pattern, got)
		}
	}
}

func TestHostPort(t *testing.T) {
	for _, c := range []struct {
		host     string
		port     int
		name     string
		backHost string
		backPort int
	}{
		{"Db1", 22, "db1", "db1", 22},
		{"db1", 0, "db1", "db1", 22},
		{"db1", 2222, "[db1]:2222", "db1", 2222},
		{"::1", 22, "::1", "::1", 22},
		{"::1", 2222, "[::1]:2222", "::1", 2222},
		{"[x", 0, "[x", "[x", 22}, // odd names stay as they are
		{"[x]:0", 0, "[x]:0", "[x]:0", 22},
		{"[x]:65536", 0, "[x]:65536", "[x]:65536", 22},
	} {
		name := HostPort(c.host, c.port)
		host, port := SplitHostPort(name)
		if name != c.name || host != c.backHost || port != c.backPort {
			t.Errorf("HostPort(%q, %d) = %q, and back %q, %d", c.host, c.port, name, host, port)
		}
	}
}
