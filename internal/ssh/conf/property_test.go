package conf

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/wildcard"

	"pgregory.net/rapid"
)

// A pattern means what the regular expression means that it translates to.
func TestMatchPatternIsARegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab.*?]{0,8}`).Draw(t, "pattern")
		s := rapid.StringMatching(`[ab.]{0,10}`).Draw(t, "s")
		expr := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		want := regexp.MustCompile("(?s)^(?:" + expr + ")$").MatchString(s)
		if got := wildcard.Match(s, pattern); got != want {
			t.Fatalf("matchPattern(%q, %q) = %v", s, pattern, got)
		}
	})
}

// Many stars take no more than quadratic time: this would run for years if each of them tried all
// lengths.
func TestMatchPatternHasNoBlowUp(t *testing.T) {
	if wildcard.Match(strings.Repeat("a", 5000), strings.Repeat("*a", 1000)+"b") {
		t.Error("matched")
	}
}

// Quoting any words by the rules of the manual page gives them back.
func TestSplitArgsUndoesQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-z "'\\#=]{1,6}`)).Draw(t, "words")
		quoted := make([]string, len(words))
		for i, word := range words {
			quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
		}
		got, err := splitWords(strings.Join(quoted, " "), true)
		if err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q: got %q, %v", words, got, err)
		}
	})
}

// The index that leads from plain names to their blocks changes no answer.
func TestIndexChangesNothing(t *testing.T) {
	line := rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "a*", "!b", "?"}), 1, 3),
			func(p []string) string { return "Host " + strings.Join(p, " ") }),
		rapid.SampledFrom([]string{"Match host a", "Match user u", "Match !originalhost b", "Match final", "Include inner",
			"HostName b", "User u", "Port 23"}),
		rapid.StringMatching(`IdentityFile /[a-h]`),
	)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "sshconf")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		write := func(name string, lines []string) string {
			path := filepath.Join(dir, ".ssh", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		write("inner", slices.DeleteFunc(rapid.SliceOfN(line, 0, 8).Draw(t, "inner"),
			func(s string) bool { return strings.HasPrefix(s, "Include") }))
		path := write("config", rapid.SliceOfN(line, 0, 16).Draw(t, "outer"))
		fast, err := Load(context.Background(), Params{Flags: Flags{Config: path}, System: System{Home: dir, User: "u", UID: os.Getuid()}})
		if err != nil {
			t.Fatal(err)
		}
		slow := *fast
		slow.named = nil
		slow.always = make([]int, len(slow.segments))
		for i := range slow.always {
			slow.always[i] = i
		}
		for _, name := range []string{"a", "b", "c", "ab"} {
			same(t, fast, &slow, name)
		}
	})
}

func same(t *rapid.T, a, b *Config, name string) {
	x, err := a.Resolve(context.Background(), host.Endpoint{Name: name})
	y, err2 := b.Resolve(context.Background(), host.Endpoint{Name: name})
	if err != nil || err2 != nil {
		t.Fatalf("%v, %v", err, err2)
	}
	for k := AddressFamily; k < keywordCount; k++ {
		if v, w := x.All(k), y.All(k); !slices.EqualFunc(v, w, sameArgs) {
			t.Errorf("%s: %s is %v and %v", name, k, v, w)
		}
	}
}

// FuzzLoad reads any text: it is taken or refused, and what is taken resolves to a host name that
// is not empty.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"Host a\n Port 22\n", "Match exec \"x\" host a,b\nUser %u", "Include *\nInclude ~/[", "Ciphers ^\nCiphers -",
		"ProxyJump ssh://%zz@[::1]:1", "RekeyLimit .\nRekeyLimit 1.5K", "CanonicalizeHostname yes\nCanonicalDomains a b",
		"Match localnetwork 10.0.0.0/8\nTag x", "\"Port 1\nPort=\"2", "UserKnownHostsFile %", "HostName 0x\nHostName ::%",
	} {
		f.Add(seed, "host")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		home := t.TempDir()
		path := filepath.Join(home, "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		system := System{Home: home, User: "u", UID: os.Getuid(), Hostname: "h", ConfigDir: home}
		c, err := Load(t.Context(), Params{Flags: Flags{Config: path}, System: system})
		if err != nil {
			return
		}
		r, err := c.Resolve(t.Context(), host.Endpoint{Name: name})
		if err != nil {
			return
		}
		if r.Port() < 1 || r.Port() > 65535 {
			t.Errorf("port %d", r.Port())
		}
		Decide(r, Capabilities{})
	})
}

// TestTimes: one rule reads the times of all releases, as misc.c:convtime of each does.
func TestTimes(t *testing.T) {
	for text, want := range map[string]struct{ before, since int }{ // -1: no time
		"90": {90, 90}, "1h30m": {5400, 5400}, "1H2": {3602, 3602}, "1w1d1s": {691201, 691201}, "0": {0, 0},
		"": {-1, -1}, "m": {-1, -1}, "5x": {-1, -1}, "-1": {-1, -1}, "5 ": {-1, -1}, "2147483648": {-1, -1}, "4000w": {-1, -1}, "99999999999999999999999999": {-1, -1},
		" 5": {5, -1}, "+5m +1": {301, -1}, "1s2s": {3, -1}, "1s2": {3, -1},
		"1.5": {-1, 1}, ".5s": {-1, 0}, "1m1.9s": {-1, 61}, "1.5m": {-1, -1}, "1.": {-1, -1}, "1s1m": {61, 61},
	} {
		for version, want := range map[Version]int{{9, 2}: want.before, decimalTimes: want.since} {
			if got, ok := seconds(text, version); ok != (want >= 0) || ok && got != want {
				t.Errorf("%q in %v: %d %v, want %d", text, version, got, ok, want)
			}
		}
	}
}
