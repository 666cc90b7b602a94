package conf_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/sshtest"
)

// choices is a source of decisions: the bytes of a fuzzer, then zeros.
type choices struct{ data []byte }

func (c *choices) n(limit int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % limit
}

func (c *choices) one(of []string) string { return of[c.n(len(of))] }

// The grammar. Nothing in it runs a program or asks the DNS.
var (
	patterns = []string{"example", "web*", "web?", "*", "!web1", "!*", "*.org", "Example", "192.*", `"db.example.org"`, "long", "127.0.0.1"}
	lists    = []string{"example", "web*,!web2", "*,!*.org", "long", "!web1", "EXAMPLE", "a,b,example", "127.0.0.1", `"example,long"`}
	users    = []string{"root", "bob", "b*", "!bob,*", "root,bob"}
	flags    = []string{"BatchMode", "Compression", "IdentitiesOnly", "HashKnownHosts", "CheckHostIP", "ForwardAgent",
		"TCPKeepAlive", "PasswordAuthentication", "PubkeyAuthentication", "ProxyUseFdpass", "PermitLocalCommand"}
	flagValues = []string{"yes", "no", "true", "YES", `"yes"`}
	settings   = []string{
		"Port 23", "Port 24", "Port http", "User bob", "User alice", "HostName long", "HostName %h.example.org",
		"HostName 127.1", "HostName Long", "IdentityFile ~/.ssh/a", "IdentityFile /b", "IdentityFile none",
		"CertificateFile /c", "SendEnv LANG LC_*", "SendEnv -L*", "SendEnv -LC_* TERM", "SetEnv A=1 B=2", "SetEnv A=3",
		"UserKnownHostsFile ~/.ssh/%k /x/%h-%p-%r", "UserKnownHostsFile none", "UserKnownHostsFile ~/.ssh/known_hosts",
		"GlobalKnownHostsFile /g ~/h", "HostKeyAlias Alias", "StrictHostKeyChecking accept-new", "StrictHostKeyChecking off",
		"ConnectTimeout 1m30", "ConnectTimeout none", "ServerAliveInterval 5", "ServerAliveCountMax 2",
		"KexAlgorithms -sntrup*", "KexAlgorithms ^ecdh-sha2-nistp256", "Ciphers aes128-ctr,aes256-ctr", "Ciphers +aes128-cbc",
		"MACs -*etm*", "HostKeyAlgorithms ssh-ed*", "HostKeyAlgorithms +ssh-rsa", "PubkeyAcceptedAlgorithms -*cert*",
		"IdentityAgent ~/sock", "IdentityAgent ${FLEET}", "IdentityAgent $FLEET", "ControlPath ~/%C", "ControlPath none",
		"AddressFamily inet6", "BindAddress 127.0.0.1", "LogLevel debug1", "RemoteCommand echo %n %h # x",
		"RequestTTY force", "ProxyJump gate", "ProxyJump bob@gate:23,two", "ProxyJump none", "ProxyJump long",
		"IgnoreUnknown Foo,Bar*", "CanonicalizeHostname yes", "RekeyLimit 1G 1h", "RekeyLimit 16k",
		"UpdateHostKeys ask", "VerifyHostKeyDNS yes", "ForwardAgent /dev/null", "AddKeysToAgent 5m", "PreferredAuthentications publickey",
	}
	// Lines that are refused, or depend on what was read before.
	doubtful = []string{"Foo bar", "Barrel x y", "Port 0", "ConnectTimeout x", "BatchMode maybe", "Match host a user b all",
		"Match", "User", "Host \"\"", "Ciphers aes*", "HostName %n", "ControlPath ${NOT_SET}", "Include"}
	queries = []string{"example", "web1", "web2", "db.example.org", "Example", "bob@example", "alice@web1", "127.1",
		"192.0.2.7", "-p 24 web1", "-l bob web2", "-o User=bob web1", "-o SendEnv=FOO -J other example", "-o IdentityFile=/b example"}
	noise = []string{`"`, `'`, `\`, "#", "=", " ", "\t", "%", "$", "{", ",", "!", "\f", ";", "x", "0"}
)

// config writes a random file of up to a few dozen lines.
func (c *choices) config(includes []string) string {
	var b strings.Builder
	for range 1 + c.n(24) {
		b.WriteString(c.one([]string{"", "  ", "\t", " "}))
		b.WriteString(c.mutate(c.line(includes)))
		b.WriteString(c.one([]string{"\n", "\n", "\n", " \n", " # note\n", "\r\n", "\n\n"}))
	}
	return b.String()
}

func (c *choices) line(includes []string) string {
	if c.n(50) == 49 {
		return c.one(doubtful)
	}
	switch kind := c.n(16); {
	case kind < 3:
		return "Host " + c.some(patterns)
	case kind < 6:
		return "Match " + c.criteria()
	case kind == 6 && len(includes) > 0:
		return "Include " + c.one(includes)
	case kind == 7:
		return c.one(flags) + c.one([]string{" ", "=", " = "}) + c.one(flagValues)
	}
	return c.one(settings)
}

func (c *choices) some(of []string) string {
	words := []string{c.one(of)}
	for range c.n(3) {
		words = append(words, c.one(of))
	}
	return strings.Join(words, " ")
}

func (c *choices) criteria() string {
	var words []string
	for range 1 + c.n(3) {
		not := c.one([]string{"", "", "!"})
		switch c.n(8) {
		case 0:
			return not + "all"
		case 1:
			words = append(words, not+"final")
		case 2:
			words = append(words, not+"canonical")
		case 3:
			words = append(words, not+"user", c.one(users))
		case 4:
			words = append(words, not+"localuser", c.one(users))
		case 5:
			words = append(words, not+"originalhost", c.one(lists))
		default:
			words = append(words, not+"host", c.one(lists))
		}
	}
	return strings.Join(words, " ")
}

// mutate spoils about one line in fifty. Host names stay what they are, lest some test asks the
// DNS.
func (c *choices) mutate(line string) string {
	if c.n(50) != 49 || strings.HasPrefix(line, "HostName") {
		return line
	}
	i := c.n(len(line) + 1)
	return line[:i] + c.one(noise) + line[i:]
}

// differ returns what ssh -G and this package say differently, or "".
func differ(t testing.TB, data []byte) (config, difference string) {
	t.Helper()
	c := &choices{data}
	l := newLab(t)
	line := c.one(queries)
	l.write(t, "two", c.config(nil))
	l.write(t, "one", c.config([]string{"two", "t*"}))
	config = c.config([]string{"one", "two", "~/.ssh/one", "nothing"})
	path := l.write(t, "config", config)
	call := parseCall(t, line)
	out, stderr, sshErr := l.ssh(t.Context(), slices.Concat([]string{"-G", "-F", path}, call.args)...)
	got, err := resolve(t, l, path, call)
	config = fmt.Sprintf("# %s\n%s", line, config)
	switch {
	case errors.Is(err, conf.ErrUnsafeHost) || errors.Is(err, conf.ErrUnsafeUser):
		return config, "" // stricter than ssh on purpose
	case sshErr != nil && err == nil && len(got.Gaps) == 0:
		return config, "ssh refuses: " + string(stderr)
	case sshErr != nil:
		return config, ""
	case err != nil:
		return config, "we refuse: " + err.Error()
	case len(got.Gaps) > 0:
		return config, fmt.Sprint("gaps: ", got.Gaps)
	}
	return config, cmp.Diff(sshtest.TableOfDump(string(out)).Read(), sshtest.TableOf(got).Read())
}

// FuzzResolve compares random files with ssh -G. Each takes some 8 ms, which the search for a
// smaller input multiplies: run it with -fuzzminimizetime=1x.
func FuzzResolve(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(randomBytes(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if config, difference := differ(t, data); difference != "" {
			t.Errorf("-ssh +ours\n%s\n%s", difference, config)
		}
	})
}

func randomBytes(seed uint64) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	data := make([]byte, 512)
	source.Read(data)
	return data
}

// TestSandbox makes sure that the files of the lab are the ones that ssh reads.
func TestSandbox(t *testing.T) {
	l := newLab(t)
	l.write(t, "more", "Port 4711\n")
	path := l.write(t, "config", "Include more\n")
	out, stderr, err := l.ssh(t.Context(), "-G", "-F", path, "x")
	if err != nil || !strings.Contains(string(out), "port 4711\n") {
		t.Fatalf("ssh did not include %s: %v %s", filepath.Join(l.home, ".ssh", "more"), err, stderr)
	}
}
