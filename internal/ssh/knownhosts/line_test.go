package knownhosts

import (
	"strings"
	"testing"

	"sshpace/internal/base/wildcard"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// key is an Ed25519 key as it stands in a line.
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBI7HDtFkSxGiTIEhnKNoKp0U+hzXGDKZxQgrDfmzVzJ"

// FuzzParse: no input may panic, a line that is read must survive being written and read again, as
// it was.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a " + key, "@revoked *,!b " + key + " x\r", HashName("a") + "\t" + key, "@cert-authority\t", "|1||", "a b c", "\x00", "@ @ @", "# x", "!"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		one, _, _ := strings.Cut(text, "\n")
		l, ok, err := Parse(one, 7)
		if ok && err != nil {
			t.Fatalf("a line with error %v", err)
		}
		if !ok {
			return
		}
		again, ok, err := Parse(l.String(), 7)
		if !ok {
			t.Fatalf("%q is written as %q, which is unreadable: %v", one, l.String(), err)
		}
		if diff := cmp.Diff(l, again, cmp.AllowUnexported(Line{}, hashedName{}), cmpopts.IgnoreFields(Line{}, "Text")); diff != "" {
			t.Fatalf("%q is written as %q:\n%s", one, l.String(), diff)
		}
	})
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
		if got := wildcard.Match(c.name, c.pattern); got != c.want {
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
