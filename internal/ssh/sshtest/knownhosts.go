package sshtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/knownhosts"
)

// Key is the n-th of an endless row of host keys, always the same.
func Key(n int) ssh.Signer {
	seed := make([]byte, ed25519.SeedSize)
	binary.BigEndian.PutUint64(seed, uint64(n))
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		panic(err)
	}
	return signer
}

// KeyText is that key as it stands in a line.
func KeyText(n int) string { return knownhosts.MarshalKey(Key(n).PublicKey()) }

// RSAKey and ECKey are made once, since making them is slow or random.
var RSAKey = sync.OnceValue(func() ssh.Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		panic(err)
	}
	return signer
})

// ECKey is an ECDSA key.
var ECKey = sync.OnceValue(func() ssh.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		panic(err)
	}
	return signer
})

// KnownHostsFile writes text into a new file and returns its path.
func KnownHostsFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FoundKey is one line that ssh-keygen or we find for a name.
type FoundKey struct {
	Line   int
	Marker knownhosts.Marker
	Print  string
}

var (
	foundLine = regexp.MustCompile(`(?m)^# Host .* found: line (\d+) ?(CA|REVOKED)?\s*$`)
	printLine = regexp.MustCompile(`SHA256:[A-Za-z0-9+/]+`)
)

// FindKeys asks the real ssh-keygen, which with -l decodes the keys of the lines that match, as ssh
// does. The exit code is 1 where nothing matches.
func FindKeys(t testing.TB, file, name string) (hits []FoundKey, code int) {
	t.Helper()
	out, err := exec.Command("ssh-keygen", "-l", "-F", name, "-f", file).Output()
	code = exitCode(t, err)
	for block := range strings.SplitSeq(string(out), "# Host ") {
		m := foundLine.FindStringSubmatch("# Host " + block)
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[1])
		hits = append(hits, FoundKey{number, map[string]knownhosts.Marker{"CA": knownhosts.MarkerCA, "REVOKED": knownhosts.MarkerRevoked}[m[2]], printLine.FindString(block)})
	}
	return hits, code
}

func exitCode(t testing.TB, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := err.(*exec.ExitError)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

// FleetFile is a file of n hosts, one ed25519 line each, without or with hashing.
func FleetFile(n int, hashed bool) string {
	var b bytes.Buffer
	for i := range n {
		name := FleetHost(i)
		if hashed {
			name = knownhosts.HashName(name)
		}
		fmt.Fprintf(&b, "%s %s\n", name, KeyText(i))
	}
	return b.String()
}

// FleetHost is the name of one of them.
func FleetHost(i int) string { return fmt.Sprintf("host%05d.example.com", i) }

// Keygen runs the real ssh-keygen.
func Keygen(args ...string) (string, error) {
	out, err := exec.Command("ssh-keygen", args...).CombinedOutput()
	return string(out), err
}

// ParseKey decodes "type base64".
func ParseKey(t testing.TB, text string) ssh.PublicKey {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
