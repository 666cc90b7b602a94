package cli_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/sshtest"
)

// said runs a program: what it prints, and its exit status.
func said(t *testing.T, stdin, program string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	text, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", program, err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// nodesets are sets and options as nodeset(1) and hosts have them: operations behind all sets,
// since nodeset applies them to the sets before them, and to nothing those that stand before the
// first.
var nodesets = sshtest.Grammar{
	"set":    {"<name>", "<name>", "<name><op><name>", "<name><op><name><op><name>", "<name><op><name><op><name><op><name>"},
	"op":     {",", ",", ",", "!", "&", "^"},
	"name":   {"<word><range>", "<word><range>", "<word><range>", "<word><range><word>", "<word><range>-<word><range>", "<word>", "<word><number>", "<word><number>p<range>", "r<range>n<range>", "<word><range>.example.org", "x<range>y<range>z<range>", "10.0.<range>.<range>"},
	"word":   {"n", "n", "web", "a-b", "node", "x", "rack"},
	"range":  {"[<span>]", "[<span>]", "[<span>,<span>]", "[<span>,<span>,<span>]", "[<span>,<number>,<span>,<number>]"},
	"span":   {"<number>", "<low>-<high>", "<low>-<high>", "<low>-<high>/<step>", "0<low>-0<high>", "00<low>-00<high>", "0<low>-0<high>/<step>", "<low>", "0<low>", "08-12", "98-102", "098-102", "1-20/<step>", "<low>-1<high>/<step>"},
	"number": {"0", "1", "2", "3", "5", "7", "10", "11", "03", "007", "20"},
	"low":    {"0", "1", "2", "3", "4"}, "high": {"5", "6", "8", "9"}, "step": {"1", "2", "3", "4", "5", "2", "3"},
	"options": {"-f <sets>", "-f <sets>", "-e <sets>", "-c <sets>", "-f <sets> <change>", "-e <sets> <change> <change>", "-c <sets> <change>", "-f --autostep=<auto> <sets>", "-f --autostep=<auto> <sets> <change>", "-e -S , <sets>", `-e -S \n <sets>`, "-e -S : <sets> <change>"},
	"sets":    {"<set>", "<set>", "<set> <set>", "<set> <set> <set>"},
	"change":  {"-x <set>", "-i <set>", "-X <set>"},
	"auto":    {"2", "3", "4", "5", "10"},
}

// TestHostsAsNodeset compares random sets and options with ClusterShell's nodeset.
func TestHostsAsNodeset(t *testing.T) {
	t.Parallel()
	count, seed := seedtest.Cases(t, 15)
	right := 0
	for n := range count {
		line := nodesets.Make(rand.New(rand.NewPCG(seed, uint64(n))), "<options>")
		args := strings.Fields(line)
		want, code := said(t, "", "nodeset", args...)
		got, ours := said(t, "", "sshpace", append([]string{"hosts"}, spelled(args)...)...)
		if (code == 0) != (ours == 0) || code == 0 && want != got && !sameSet(t, want, got) {
			t.Errorf("case %d: %s\nnodeset (%d) %s\nhosts   (%d) %s", n, line, code, want, ours, got)
		}
		if code == 0 {
			right++
		}
	}
	t.Logf("%d cases, %d without a mistake", count, right)
	if right < count/3 {
		t.Errorf("nodeset refuses %d of %d: the grammar has lost its way", count-right, count)
	}
}

// spelled are nodeset's options as hosts has them: -f, -c and -i mean something else in every
// command of ours.
func spelled(args []string) []string {
	args = slices.Clone(args)
	for i, word := range args {
		if ours, ok := map[string]string{"-f": "--fold", "-c": "-n", "-i": "-I"}[word]; ok {
			args[i] = ours
		}
	}
	return args
}

// sameSet reports whether two answers of nodeset are one set: numbers that stand outside of
// brackets are text to nodeset beside those in brackets, and ranges to us.
func sameSet(t *testing.T, a, b string) bool {
	t.Helper()
	separators := regexp.MustCompile(`[\s:]+`)
	sorted := func(text string) []string {
		all, code := said(t, "", "nodeset", append([]string{"-e"}, strings.Fields(separators.ReplaceAllString(text, " "))...)...)
		if code != 0 {
			return []string{text}
		}
		names := strings.Fields(all)
		slices.Sort(names)
		return names
	}
	return slices.Equal(sorted(a), sorted(b))
}

// knownLines are the lines of known_hosts files; K1 to K5 stand for keys, HASH(x) for a hashed
// name.
var knownLines = sshtest.Grammar{
	"file":    {"<line>", "<line>\n<line>\n<line>\n", "<line>\n<line>\n<line>\n<line>\n<line>\n<line>\n", "<line>\r\n<line>\r\n<line>\r\n", "\n\n<line>\n# x\n<line>"},
	"line":    {"<mark><hosts> <key><end>", "<mark><hosts> <key><end>", "<mark><hosts> <key><end>", "<mark><hosts> <key><end>", "<odd>"},
	"mark":    {"", "", "", "", "@revoked ", "@cert-authority ", " ", "\t", "@cert-authority\t", "@revoked  "},
	"hosts":   {"<name>", "<name>", "<name>,<name>", "<name>,<pattern>", "<pattern>", "<pattern>,<name>,<pattern>", "HASH(<name>)", "HASH(<name>)"},
	"name":    {"db1", "web1", "DB1", "db1.example.org", "[db1]:2222", "[web1]:22", "10.0.0.1", "[10.0.0.1]:2222", "::1", "[::1]:2222", "ü"},
	"pattern": {"*", "db*", "!db1", "*.example.org", "[*]:2222", "?b1", "!*", "[db1]:*", "*1*", "db1*,!db1.example.org", ""},
	"key":     {"K1", "K2", "K3", "K4", "K5"},
	"end":     {"", "", "", " comment", " two words # x", "\r", "  ", "\tcomment"},
	"odd":     {"", "   ", "# comment", "#<name> <key>", "<name>", "<name> ssh-ed25519", "<name> <key>x", "@unknown <name> <key>", "|1|bad <key>", "<name>\t<key>", "@revoked", "@revoked @revoked <name> <key>", "<name> ssh-rsa AAAAC3NzaC1lZDI1NTE5", "<name> 1024 35 123"},
	"lookup":  {"<name>", "<name>", "<name>", "nobody", "Web1", "[nobody]:1", "db1.example.com", "-p 2222 db1", "-p 22 db1", "-p 2222 web1"},
}

// testKeys are five public keys of three types.
func testKeys(t *testing.T) (keys []string) {
	t.Helper()
	for i, kind := range []string{"ed25519", "ed25519", "ecdsa", "rsa", "rsa"} {
		path := filepath.Join(t.TempDir(), "key")
		if out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-b", []string{"256", "256", "256", "2048", "3072"}[i], "-N", "", "-C", "", "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(path + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, strings.TrimSpace(string(text)))
	}
	return keys
}

var (
	keyWord     = regexp.MustCompile(`\bK[1-5]`)
	hashed      = regexp.MustCompile(`HASH\(([^)]*)\)`)
	fingerprint = regexp.MustCompile(`SHA256:[A-Za-z0-9+/]+`)
)

// TestLookupAsKeygen compares what is found in random files, and the fingerprints of it, with
// ssh-keygen -F and -l; a file that split makes of it holds the same.
func TestLookupAsKeygen(t *testing.T) {
	t.Parallel()
	keys := testKeys(t)
	count, seed := seedtest.Cases(t, 15)
	found := 0
	for n := range count {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		text := keyWord.ReplaceAllStringFunc(knownLines.Make(rng, "<file>"), func(k string) string { return keys[k[1]-'1'] })
		text = hashed.ReplaceAllStringFunc(text, func(h string) string { return knownhosts.HashName(hashed.FindStringSubmatch(h)[1]) })
		dir := t.TempDir()
		file := filepath.Join(dir, "known")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(knownLines.Make(rng, "<lookup>"))
		name := words[len(words)-1]
		if len(words) == 3 && words[1] != "22" {
			name = "[" + name + "]:" + words[1]
		}
		want, code := said(t, "", "ssh-keygen", "-F", name, "-f", file)
		if want = usable(want); want == "" {
			code = 1
		}
		got, ours := said(t, "", "sshpace", append([]string{"known-hosts", "lookup", "--known-hosts", file}, words...)...)
		if want != got || code != ours {
			t.Errorf("case %d: %s\nssh-keygen (%d) %q\nlookup     (%d) %q\nin %q", n, words, code, want, ours, got, text)
		}
		prints, _ := said(t, "", "ssh-keygen", "-l", "-F", name, "-f", file)
		asJSON, _ := said(t, "", "sshpace", append([]string{"known-hosts", "lookup", "--json", "--known-hosts", file}, words...)...)
		if !slices.Equal(fingerprint.FindAllString(prints, -1), fingerprint.FindAllString(asJSON, -1)) {
			t.Errorf("case %d: %s\nssh-keygen -l %s\nlookup --json %s\nin %q", n, words, prints, asJSON, text)
		}
		found += strings.Count(want, "# Host")
		if strings.ContainsAny(name, "[:ü") || strings.ToLower(name) != name {
			continue
		}
		if out, code := said(t, "", "sshpace", "known-hosts", "split", "--no-resolve", "--known-hosts", file, "--dir", filepath.Join(dir, "split"), "-w", name, "-F", "none"); code != 0 {
			t.Errorf("case %d: split: %s\nin %q", n, out, text)
		}
		alone, _ := said(t, "", "ssh-keygen", "-F", name, "-f", filepath.Join(dir, "split", strings.ToLower(name)))
		if !slices.Equal(foundKeys(alone), foundKeys(want)) {
			t.Errorf("case %d: %s\nof the file %q\nof its part %q\nin %q", n, name, want, alone, text)
		}
	}
	t.Logf("%d cases, %d lines found", count, found)
	if found < count/5 {
		t.Error("the grammar has lost its way")
	}
}

// usable leaves out what ssh-keygen -F finds but ssh passes over: a key that cannot be read.
func usable(found string) (text string) {
	for _, block := range regexp.MustCompile(`(?m)^# Host .* found: `).FindAllStringIndex(found, -1) {
		rest := found[block[0]:]
		lines := strings.SplitAfterN(rest, "\n", 3)
		l, _, err := knownhosts.Parse(strings.TrimSuffix(lines[1], "\n"), 1)
		if err == nil {
			_, _, err = l.Key()
		}
		if err == nil {
			text += lines[0] + lines[1]
		}
	}
	return text
}

var foundLine = regexp.MustCompile(`(?m)^[ \t]*(@\S+)?[ \t]*[^# \t]\S*[ \t]+(\S+[ \t]+\S+).*$`)

// foundKeys are the marks and keys of what ssh-keygen -F prints: split writes names plainly, and a
// key that two lines name alike once.
func foundKeys(found string) (keys []string) {
	for _, m := range foundLine.FindAllStringSubmatch(found, -1) {
		if key := m[1] + " " + m[2]; !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
