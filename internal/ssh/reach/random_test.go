package reach

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// knownFiles is what the random files are made of. NAME is the server's name in them, ED and so on
// the keys of the servers.
var knownFiles = sshtest.Grammar{
	"file":   {"<line>", "<line>\n<line>", "<line>\n<line>\n<line>", "<line>\n<line>\n<line>\n<line>\n<line>\n<line>", "<line>\r\n<line>\r\n<line>\r\n", ""},
	"line":   {"<plain>", "<plain>", "<plain>", "<plain>", "<marked>", "<marked>", "<bad>", "<plain> a comment", "\t <plain>", "<plain>\r", "<twice>"},
	"plain":  {"<hosts> <key>"},
	"twice":  {"<hosts> ED\n<hosts> OTHER", "NAME EC\nNAME OTHER", "NAME RSA\nNAME EC", "NAME OTHERRSA\nNAME EC"},
	"marked": {"@revoked <hosts> <key>", "@cert-authority <hosts> <key>", "@cert-authority <hosts> CA", "@cert-authority NAME CA", "@revoked <hosts> CA", "@unknown <hosts> <key>", "@cert-authority <hosts> OTHER"},
	"bad": {" \t ", "NAME,NAME", "@cert-authority", "@cert-authority NAME", "NAME 2048 35 123456789", "NAME  <key>", "@revoked\tNAME <key>", "<hosts> ssh-ed25519 <key>", "NAME ssh-rsa AAAAC3NzaC1lZDI1NTE5", "#@revoked NAME <key>",
		"|1|AAAA|BBBB <key>", "|1|HASHED <key>", "|2|x|y <key>", "NAME\v<key>", "NAME <key>\t\tx", "@Revoked NAME <key>", "@cert-authority  NAME   CA", "\"NAME\" <key>",
		"", "# <plain>", "NAME", "NAME ssh-ed25519", "NAME ssh-ed25519 AAAA", "NAME <key>x", "nonsense here <key>", "|1|x|y <key>", "@revoked", "NAME ssh-rsa AAAAB3", "@revoked @revoked NAME <key>",
		"NAME\t<key>", "\x00", "NAME ed25519 AAAA", "<undecoded>", "<undecoded>"},
	"undecoded": {"<hosts> MLDSA", "NAME MLDSA", "NAME MLDSA\n<plain>", "<plain>\nNAME MLDSA", "BARE MLDSA", "@cert-authority <hosts> MLDSA", "@revoked <hosts> MLDSA", "NAME ssh-future@example.com AAAAEnNzaC1mdXR1cmVAZXhhbXBsZQ=="},
	"hosts": {"NAME,other,BARE", "HASHED,NAME", "NAME,NAME,", ",NAME", "NAME;", "[127.0.0.1]:22", "!BARE,NAME,*", "127.0.0.0,NAME", "[NAME]", "*:*", "[*]:*", "NAME,!*x*",
		"NAME", "NAME", "NAME", "HASHED", "HASHED", "<pattern>", "<pattern>,<pattern>", "<pattern>,NAME", "NAME,<pattern>", "other,x.y", "*,!NAME", "!NAME,*", "BARE", "BARE"},
	"pattern": {"*", "[127.0.0.*]:*", "[127.*", "127.0.0.?", "!other", "!127.*", "other", "w?b", "WEB", "*.test", "!*", "[127.0.0.1]:*", "*[*", ""},
	"key":     {"ED", "ED", "EC", "RSA", "OTHER", "OTHER", "OTHERRSA", "OTHEREC", "CA"},
	"list": {"ssh-ed25519", "ecdsa-sha2-nistp256,ssh-ed25519", "rsa-sha2-512,rsa-sha2-256", "ssh-ed25519-cert-v01@openssh.com", "ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256", "^rsa-sha2-512", "-ssh-ed25519*", "+ssh-rsa", "^ssh-ed25519", "ecdsa*",
		"ssh-rsa", "*", "ssh-ed25519,ssh-rsa", "rsa-sha2-256,ecdsa-sha2-nistp256", "-*cert*", "+ssh-dss", "ecdsa-sha2-nistp384", "^*cert*", "ecdsa-sha2-nistp256-cert-v01@openssh.com,ssh-ed25519"},
	"extra": {"RequiredRSASize=3072", "RequiredRSASize=2048", "CheckHostIP=yes", "CheckHostIP=no", "RevokedHostKeys=KEYS", "KnownHostsCommand=/bin/cat KEYS", "KnownHostsCommand=/bin/echo %H ssh-ed25519 AAAA", "FingerprintHash=md5",
		"VisualHostKey=yes", "CASignatureAlgorithms=ssh-ed25519", "CASignatureAlgorithms=ecdsa-sha2-nistp256", "RevokedHostKeys=none", "NoHostAuthenticationForLocalhost=no"},
	"files": {"USER", "USER", "USER", "USER GLOBAL", "GLOBAL USER", "none", "/nonexistent/file USER", "/dev/null USER"},
}

// keyedServer is a server and what it is called.
type keyedServer struct {
	*sshtest.Sshd
	keys map[string]string // by the words of the grammar

	nameless bool // its certificate has no principals
}

// mldsa is a key of a type that only OpenSSH since 10.4 knows.
func mldsa() string {
	const name = "ssh-mldsa44-ed25519@openssh.com"
	return name + " " + base64.StdEncoding.EncodeToString(ssh.Marshal(struct {
		Type   string
		Public []byte
	}{name, make([]byte, 1312+32)}))
}

// keyedServers have one key, all, or one with a certificate.
func keyedServers(t *testing.T) []keyedServer {
	t.Helper()
	dir := t.TempDir()
	make := func(name string, args ...string) (path, public string) {
		path = filepath.Join(dir, name)
		if out, err := exec.Command("ssh-keygen", slices.Concat([]string{"-q", "-N", "", "-C", "", "-f", path}, args)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(path + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		return path, strings.TrimSpace(string(text))
	}
	keys := map[string]string{}
	ca, text := make("ca", "-t", "ed25519")
	keys["CA"] = text
	ec, text := make("ec", "-t", "ecdsa")
	keys["EC"] = text
	rsa, text := make("rsa", "-t", "rsa", "-b", "2048")
	keys["RSA"] = text
	for name, kind := range map[string]string{"OTHER": "ed25519", "OTHEREC": "ecdsa", "OTHERRSA": "rsa"} {
		_, keys[name] = make("other"+kind, "-t", kind)
	}
	certified, ed := make("certified", "-t", "ed25519")
	keys["MLDSA"] = mldsa()
	servers := []keyedServer{}
	names := [][]string{{"-n", "127.0.0.1,web"}, {"-n", "127.*,w?b,[[]*"}, nil} // of certificates
	for i, lines := range [][]string{nil, {"HostKey " + ec, "HostKey " + rsa}, {"HostKey " + certified, "HostCertificate"}, {"HostKey " + certified, "HostCertificate"}, {"HostKey " + certified, "HostCertificate"}} {
		if i >= 2 {
			own := fmt.Sprint(certified, i)
			if out, err := exec.Command("cp", certified+".pub", own+".pub").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if out, err := exec.Command("ssh-keygen", slices.Concat([]string{"-q", "-s", ca, "-h", "-I", "host"}, names[i-2], []string{own + ".pub"})...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			lines = []string{lines[0], "HostCertificate " + own + "-cert.pub", "HostKey " + ec}
		}
		s := sshtest.StartSshd(t, append(lines, "MaxAuthTries 20", "LoginGraceTime 20")...)
		own := map[string]string{"ED": knownhosts.MarshalKey(s.HostKey)}
		for name, key := range keys {
			own[name] = key
		}
		if len(lines) > 0 && strings.HasSuffix(lines[0], "certified") {
			own["EC"], own["RSA"] = keys["EC"], ed
		}
		servers = append(servers, keyedServer{s, own, i == 4})
	}
	return servers
}

// knownCase is a server, files and settings.
type knownCase struct {
	server   keyedServer
	files    [2]string // of known_hosts
	lists    [2]string // of files, the user's and the global ones
	settings []string
	accept   bool
}

var word = regexp.MustCompile(`\b(NAME|BARE|HASHED|ED|EC|RSA|CA|OTHER|OTHEREC|OTHERRSA|MLDSA)\b`)

func randomKnownCase(t *testing.T, rng *rand.Rand, servers []keyedServer) knownCase {
	c := knownCase{server: servers[rng.IntN(len(servers))]}
	name, bare := knownhosts.HostPort("127.0.0.1", c.server.Port), "127.0.0.1"
	if rng.IntN(4) == 0 {
		name, bare = "web", "web"
		alias := []string{"web", "Web", "other", "[127.0.0.1]:22"}[rng.IntN(4)]
		if rng.IntN(2) == 0 {
			alias = "web"
		}
		c.settings = append(c.settings, "HostKeyAlias="+alias)
	}
	if rng.IntN(4) == 0 {
		c.settings = append(c.settings, knownFiles.Make(rng, "<extra>"))
	}
	c.lists = [2]string{knownFiles.Make(rng, "<files>"), "GLOBAL"}
	if rng.IntN(6) == 0 {
		c.lists[1] = "none"
	}
	if rng.IntN(3) == 0 {
		c.settings = append(c.settings, "HostKeyAlgorithms="+knownFiles.Make(rng, "<list>"))
	}
	if c.accept = rng.IntN(3) == 0; c.accept {
		c.settings = append(c.settings, "StrictHostKeyChecking=accept-new", "HashKnownHosts="+[]string{"yes", "no"}[rng.IntN(2)])
	} else {
		c.settings = append(c.settings, "StrictHostKeyChecking=yes")
	}
	for i := range c.files {
		if i == 1 && rng.IntN(3) > 0 {
			break
		}
		c.files[i] = word.ReplaceAllStringFunc(knownFiles.Make(rng, "<file>"), func(w string) string {
			switch w {
			case "NAME":
				return name
			case "BARE":
				return bare
			case "HASHED":
				return knownhosts.HashName([]string{name, name, bare, "other"}[rng.IntN(4)])
			}
			return c.server.keys[w]
		})
		if c.files[i] != "" && rng.IntN(2) == 0 {
			c.files[i] += "\n"
		}
	}
	return c
}

// write puts the files into a directory and returns the settings with them.
func (c knownCase) write(t *testing.T) (file string, settings []string) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, text := range c.files {
		path := filepath.Join(dir, fmt.Sprint("known", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	keys := filepath.Join(dir, "keys")
	var lines strings.Builder
	for _, name := range []string{"EC", "OTHER"} {
		lines.WriteString(c.keysFor(name))
	}
	if err := os.WriteFile(keys, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	named := strings.NewReplacer("USER", paths[0], "GLOBAL", paths[1], "KEYS", keys)
	settings = []string{"UserKnownHostsFile=" + named.Replace(c.lists[0]), "GlobalKnownHostsFile=" + named.Replace(c.lists[1]), "UpdateHostKeys=no",
		"IdentityFile=none", "IdentityAgent=none", "BatchMode=yes"}
	for _, s := range c.settings {
		settings = append(settings, named.Replace(s))
	}
	return paths[0], settings
}

// keysFor is a line of the file that RevokedHostKeys and KnownHostsCommand read: to the one a key,
// to the other a line of known_hosts or none.
func (c knownCase) keysFor(name string) string {
	if slices.ContainsFunc(c.settings, func(s string) bool { return strings.HasPrefix(s, "RevokedHostKeys") }) {
		return c.server.keys[name] + "\n"
	}
	return knownhosts.HostPort("127.0.0.1", c.server.Port) + " " + c.server.keys[name] + "\n"
}

// engine is ours but for settings that only ssh can carry out.
func (c knownCase) engine() Engine {
	for _, s := range c.settings {
		if strings.HasPrefix(s, "RevokedHostKeys") || strings.HasPrefix(s, "CASignature") || s == "CheckHostIP=yes" {
			return Auto
		}
	}
	return Native
}

// bySSH is what ssh says of the key, in one word.
func bySSH(t *testing.T, port int, settings []string) string {
	t.Helper()
	args := []string{"-F", "none", "-p", fmt.Sprint(port)}
	for _, s := range settings {
		args = append(args, "-o", s)
	}
	out, err := exec.CommandContext(t.Context(), "ssh", append(args, "127.0.0.1", "true")...).CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		t.Fatalf("ssh: %v: %s", err, out)
	}
	for _, s := range []struct{ text, answer string }{
		{"Permission denied", "accepted"}, {"no matching host key type", "no key in common"}, {"REVOKED HOST KEY", "refused"}, {"HAS CHANGED", "refused"},
		{"Host key verification failed", "refused"}, {"Invalid key length", "refused"}, {"Couldn't drop certificate", "refused"}, {"Bad key types", "no such setting"},
	} {
		if strings.Contains(string(out), s.text) {
			return s.answer
		}
	}
	t.Fatalf("what does ssh say? %s", out)
	return ""
}

// byUs is the same of our engine.
var byUs = map[fleet.Class]string{
	fleet.AuthFailed: "accepted", fleet.NoCommonAlgo: "no key in common",
	fleet.HostKeyRevoked: "refused", fleet.HostKeyChanged: "refused", fleet.HostKeyUnknown: "refused", fleet.HostKeyWeak: "refused",
}

// TestRandomKnownHosts compares with ssh whether a key is accepted, and what is recorded then.
func TestRandomKnownHosts(t *testing.T) {
	servers := keyedServers(t)
	count, seed := seedtest.Cases(t, 25)
	answers, stricter := map[string]int{}, 0
	for n := range count {
		c := randomKnownCase(t, rand.New(rand.NewPCG(seed, uint64(n))), servers)
		theirs, settings := c.write(t)
		want := bySSH(t, c.server.Port, settings)
		answers[want]++
		if want == "no such setting" { // DSA, since 10.0
			continue
		}
		ours, settings := c.write(t)
		got := try(t, c.server.Sshd, c.engine(), settings)
		switch {
		case want == "accepted" && byUs[got.Class] == "refused" && c.doubtful(settings):
			stricter++
		case c.accept && got.Class == fleet.HostKeyUnknown: // stricter on purpose (doc/security.md): there is an authority, or no place to record
			if !strings.Contains(c.files[0]+c.files[1], "@cert-authority") && strings.HasPrefix(c.lists[0], "USER") {
				t.Errorf("case %d: a new key is not accepted: %s", n, got.Err)
			}
		case byUs[got.Class] != want:
			t.Errorf("case %d: %q: ssh: %s, ours: %v %s\n%s\n--\n%s", n, c.settings, want, got.Class, got.Err, c.files[0], c.files[1])
		case recorded(t, theirs, c.files[0]) != recorded(t, ours, c.files[0]):
			t.Errorf("case %d: %q: ssh recorded %q, ours %q\n%q", n, c.settings, recorded(t, theirs, c.files[0]), recorded(t, ours, c.files[0]), c.files[0])
		}
	}
	t.Logf("%d cases: %v, %d times stricter", count, answers, stricter)
	if answers["accepted"] < count/6 || answers["refused"] < count/6 {
		t.Errorf("the grammar has lost its way: %v", answers)
	}
}

// doubtful reports whether ours may be stricter on purpose: a line of the host cannot be decoded,
// or the certificate has no principals, which only older releases took.
func (c knownCase) doubtful(settings []string) bool {
	name, files := knownhosts.HostPort("127.0.0.1", c.server.Port), []string{}
	for _, s := range settings {
		switch keyword, value, _ := strings.Cut(s, "="); keyword {
		case "HostKeyAlias":
			name = value
		case "UserKnownHostsFile", "GlobalKnownHostsFile":
			files = append(files, strings.Fields(value)...)
		}
	}
	_, undecoded := index.Open(files...).Matching(name)
	return len(undecoded) > 0 || c.server.nameless
}

// recorded is what a file has more than before, but for the salt of hashed names.
func recorded(t *testing.T, file, before string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	added := strings.TrimPrefix(strings.TrimPrefix(string(text), before), "\n") // ssh 9.2 glues it to a line that has no end
	return regexp.MustCompile(`\|1\|\S+`).ReplaceAllString(added, "|1|")
}
