package knownhosts

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
)

// edKey is the n-th of an endless row of host keys, always the same.
func edKey(n int) ssh.Signer {
	seed := make([]byte, ed25519.SeedSize)
	binary.BigEndian.PutUint64(seed, uint64(n))
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		panic(err)
	}
	return signer
}

func edLine(n int) string { return marshalKey(edKey(n).PublicKey()) }

// rsaKey and ecKey are made once, since making them is slow or random.
var rsaKey = sync.OnceValue(func() ssh.Signer {
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

var ecKey = sync.OnceValue(func() ssh.Signer {
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

// writeFile writes text into a new file and returns its path.
func writeFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hit is one line that ssh-keygen or we find for a name.
type hit struct {
	Line   int
	Marker Marker
	Print  string
}

var (
	foundLine = regexp.MustCompile(`(?m)^# Host .* found: line (\d+) ?(CA|REVOKED)?\s*$`)
	printLine = regexp.MustCompile(`SHA256:[A-Za-z0-9+/]+`)
)

// keygenFind asks the real ssh-keygen, which with -l decodes the keys of the
// lines that match, as ssh does. The exit code is 1 where nothing matches.
func keygenFind(t testing.TB, file, name string) (hits []hit, exitCode int) {
	t.Helper()
	out, err := exec.Command("ssh-keygen", "-l", "-F", name, "-f", file).Output()
	exitCode = exitOf(t, err)
	for block := range strings.SplitSeq(string(out), "# Host ") {
		m := foundLine.FindStringSubmatch("# Host " + block)
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[1])
		hits = append(hits, hit{number, map[string]Marker{"CA": MarkerCA, "REVOKED": MarkerRevoked}[m[2]], printLine.FindString(block)})
	}
	return hits, exitCode
}

func exitOf(t testing.TB, err error) int {
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

// find is keygenFind by the package under test.
func find(x *Index, name string) (hits []hit) {
	for _, e := range x.Lookup(name, 0) {
		hits = append(hits, hit{e.Line, e.Marker, ssh.FingerprintSHA256(e.Key)})
	}
	return hits
}

// fleetFile is a file of n hosts, one ed25519 line each, without or with hashing.
func fleetFile(n int, hashed bool) string {
	var b bytes.Buffer
	for i := range n {
		name := fleetHost(i)
		if hashed {
			name = HashName(name)
		}
		fmt.Fprintf(&b, "%s %s\n", name, edLine(i))
	}
	return b.String()
}

func fleetHost(i int) string { return fmt.Sprintf("host%05d.example.com", i) }

// keygen runs the real ssh-keygen.
func keygen(args ...string) (string, error) {
	out, err := exec.Command("ssh-keygen", args...).CombinedOutput()
	return string(out), err
}

// parsedKey decodes "type base64".
func parsedKey(text string) (ssh.PublicKey, error) {
	key, _, err := line{key: text}.parseKey()
	return key, err
}
