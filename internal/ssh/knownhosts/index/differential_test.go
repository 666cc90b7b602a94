package index

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	skeema "github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/sshtest"
)

// The names of the generated files and of the look-ups in them: few enough that lines collide, with
// everything that a host field can hold.
var (
	lookedUp  = []string{"a", "b", "ab", "a.x", "b.x", "a.b.x", "[a]:2222", "[b.x]:2222", "[a]:1", "10.0.0.1", "::1", "[::1]:2222", "zz"}
	fieldForm = []string{"a", "b", "ab", "A", "a.x", "B.x", "*.x", "?", "a*", "*", "!a", "!*.x", "!a.x", "[a]:2222", "[*]:2222", "[a]:*", "*:2222", "[b.x]:2222",
		"10.0.0.1", "10.0.0.*", "::1", "[::1]:2222", "*a*b*", "??", "", "!", "!!a"}
)

// generator makes files from a seed.
type generator struct {
	*rand.Rand
	tidy bool // only lines that every reader understands alike
}

func (g generator) pick(from []string) string { return from[g.IntN(len(from))] }

func (g generator) hosts() string {
	if g.IntN(4) == 0 {
		return knownhosts.HashName(g.pick(lookedUp))
	}
	names := make([]string, 1+g.IntN(3))
	for i := range names {
		names[i] = g.pick(fieldForm)
		for g.tidy && !tidyPattern(names[i]) {
			names[i] = g.pick(fieldForm)
		}
	}
	return strings.Join(names, ",")
}

// tidyPattern leaves out what the Go libraries read in their own way: capital letters, odd
// negations, patterns that span host and port, and a last star, which x/crypto does not let stand
// for nothing.
func tidyPattern(s string) bool {
	lastStar := len(s) > 1 && strings.HasSuffix(s, "*")
	return s != "" && s != "!" && s != "!!a" && s == strings.ToLower(s) && !strings.Contains(s, ":") && !lastStar
}

func (g generator) key() string {
	switch g.IntN(8) {
	case 0:
		return knownhosts.MarshalKey(sshtest.RSAKey().PublicKey())
	case 1:
		return knownhosts.MarshalKey(sshtest.ECKey().PublicKey())
	}
	return sshtest.KeyText(g.IntN(4))
}

func (g generator) line() string {
	marker := g.pick([]string{"", "", "", "", "@cert-authority ", "@revoked "})
	if g.tidy {
		return strings.Replace(marker, "@revoked ", "", 1) + g.hosts() + " " + g.key()
	}
	switch g.IntN(16) {
	case 0:
		return g.pick([]string{"", "# comment", "  \t", "#a " + g.key(), "a", "a ssh-ed25519", "a ssh-ed25519 ", "a # x", "@x a " + g.key(),
			"@revoked", "@revoked @revoked a " + g.key(), "@revoked\ta " + g.key(), "@revoked a\t" + g.key(), "|1|bad|bad " + g.key(), "|2|x " + g.key(),
			"a ssh-rsa " + g.key(), "a " + strings.Replace(g.key(), "ssh-rsa", "rsa-sha2-512", 1), "a " + g.key() + "x", "a " + g.key()[:30], "a ecdsa-sha2-nistp256 AAAA"})
	case 1:
		return "\t " + marker + " " + g.hosts() + "\t  " + g.key() + " a comment\r"
	case 2:
		return marker + g.hosts() + " " + g.key() + g.pick([]string{"\r", "\r\r"})
	}
	return marker + g.hosts() + " " + g.key()
}

func (g generator) file() string {
	lines := make([]string, 1+g.IntN(12))
	for i := range lines {
		lines[i] = g.line()
	}
	return strings.Join(lines, "\n") + g.pick([]string{"", "\n"})
}

// sameAsKeygen compares every look-up in a file with the real ssh-keygen and returns how many lines
// were found.
func sameAsKeygen(t *testing.T, text string, names []string) (found int) {
	t.Helper()
	file := sshtest.KnownHostsFile(t, text)
	x := Open(file)
	for _, name := range names {
		want, code := sshtest.FindKeys(t, file, name)
		got := find(x, name)
		found += len(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("look-up of %q (-ssh-keygen +ours):\n%s\nin\n%s", name, diff, text)
		}
		if (code == 0) != (len(got) > 0) {
			t.Errorf("look-up of %q: ssh-keygen exits with %d, we find %d lines", name, code, len(got))
		}
	}
	return found
}

// TestLookupAgainstKeygen runs the rules of matching against OpenSSH's own.
func TestLookupAgainstKeygen(t *testing.T) {
	found := 0
	count, seed := seedtest.Cases(t, 40)
	for n := range uint64(count) {
		g := generator{Rand: rand.New(rand.NewPCG(n, seed))}
		names := make([]string, 6)
		for i := range names {
			names[i] = g.pick(lookedUp)
		}
		found += sameAsKeygen(t, g.file(), names)
	}
	t.Logf("%d files, %d lines found; seed %d", count, found, seed)
	if found < count*5/2 {
		t.Fatalf("only %d lines found; the generator has lost its way", found)
	}
}

// FuzzLookup is TestLookupAgainstKeygen with files that the fuzzer makes.
func FuzzLookup(f *testing.F) {
	key := sshtest.KeyText(1)
	f.Add("a "+key+"\n*,!b "+key+"\n", "a", uint64(1))
	f.Add("@revoked * "+key+"\r\n[a]:2222,a "+key+"\n", "[a]:2222", uint64(2))
	f.Add(knownhosts.HashName("a")+" "+key+" comment\n\n# x\na,A,a "+key, "a", uint64(3))
	f.Add("@cert-authority *.x,!a.x "+key+"\x00junk\n", "b.x", uint64(4))
	f.Fuzz(func(t *testing.T, text, name string, seed uint64) {
		if name == "" || name != wildcard.Lower(name) || strings.ContainsAny(name, "\x00\n\r") || name[0] == '-' {
			t.Skip("not a name that ssh would look up")
		}
		g := generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		sameAsKeygen(t, text+"\n"+g.file(), []string{name})
	})
}

// TestLookupAgainstLibraries compares what is known of a host with skeema's package and with
// x/crypto's below it, on lines that those read as ssh does.
func TestLookupAgainstLibraries(t *testing.T) {
	hosts := []string{"a", "b", "ab", "a.x", "b.x", "a.b.x", "10.0.0.1", "zz"}
	compared := 0
	for seed := range uint64(300) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 3)), tidy: true}
		file := sshtest.KnownHostsFile(t, g.file())
		db, err := skeema.NewDB(file)
		if err != nil {
			t.Fatal(err)
		}
		x := Open(file)
		for _, host := range hosts {
			want := keysOf(db.HostKeys(host + ":22"))
			got := []string{}
			for _, e := range x.Lookup(host, 22) {
				got = append(got, fmt.Sprint(e.Marker == knownhosts.MarkerCA, " ", e.Fingerprint()))
			}
			compared += len(got)
			if diff := cmp.Diff(want, got); diff != "" {
				text, _ := os.ReadFile(file)
				t.Fatalf("keys of %s (-skeema +ours):\n%s\nin\n%s", host, diff, text)
			}
		}
	}
	if compared < 1000 {
		t.Fatalf("only %d lines compared; the generator has lost its way", compared)
	}
}

func keysOf(keys []skeema.PublicKey) []string {
	out := []string{}
	for _, k := range keys {
		out = append(out, fmt.Sprint(k.Cert, " ", k.Type(), " ", ssh.FingerprintSHA256(k)))
	}
	return out
}

// TestHashedByKeygen reads a file that ssh-keygen -H has hashed.
func TestHashedByKeygen(t *testing.T) {
	file := sshtest.KnownHostsFile(t, "a "+sshtest.KeyText(1)+"\n[b]:2222 "+sshtest.KeyText(2)+"\n")
	if out, err := sshtest.Keygen("-q", "-H", "-f", file); err != nil {
		t.Fatal(err, out)
	}
	x := Open(file)
	for name, line := range map[string]int{"a": 1, "[b]:2222": 2, "A": 1} {
		got := x.Lookup(name, 0)
		if len(got) != 1 || got[0].Line != line || !got[0].Hashed {
			t.Errorf("%s: found %+v, want line %d", name, got, line)
		}
	}
	if leftover, _ := filepath.Glob(file + "*"); slices.Contains(leftover, file+".old") {
		os.Remove(file + ".old")
	}
}

// find is sshtest.FindKeys by the package under test.
func find(x *Index, name string) (hits []sshtest.FoundKey) {
	for _, e := range x.Lookup(name, 0) {
		hits = append(hits, sshtest.FoundKey{Line: e.Line, Marker: e.Marker, Print: ssh.FingerprintSHA256(e.Key)})
	}
	return hits
}
