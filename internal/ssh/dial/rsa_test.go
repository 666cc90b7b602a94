package dial_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
)

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// writeRSA writes a private key and returns its path and public half.
func writeRSA(t *testing.T, bits int) (path string, public ssh.PublicKey) {
	t.Helper()
	key := rsaKey(t, bits)
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "id_rsa")
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	public, err = ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return path, public
}

// TestRequiredRSASize: host keys and keys of ours that are too short are not used, as by ssh.
func TestRequiredRSASize(t *testing.T) {
	hostKey, err := ssh.NewSignerFromKey(rsaKey(t, 2048))
	if err != nil {
		t.Fatal(err)
	}
	server := (&sshtest.Server{HostKey: hostKey}).Start(t)
	for bits, want := range map[int]fleet.Class{0: fleet.NoFailure, 2048: fleet.NoFailure, 2049: fleet.HostKeyWeak} {
		tg := target(t, server)
		tg.HostKeyAlgorithms, tg.MinRSABits = []string{"rsa-sha2-512"}, bits
		r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "x"}, &sshtest.Told{})[0]
		if r.Class != want || want != fleet.NoFailure && !strings.Contains(r.Err, "RSA key of 2048 bits, RequiredRSASize is 2049") {
			t.Errorf("host key, at least %d bits: %v %s", bits, r.Class, r.Err)
		}
	}
	s := sshtest.StartSshd(t)
	path, public := writeRSA(t, 2048)
	if err := os.WriteFile(filepath.Join(s.Dir, "authorized_keys"), []byte(sshtest.AuthorizedLine(public)), 0o600); err != nil {
		t.Fatal(err)
	}
	for bits, want := range map[int]fleet.Class{2048: fleet.NoFailure, 3072: fleet.AuthFailed} {
		tg := sshdTarget(s)
		tg.Identity, tg.MinRSABits = dial.Identity{Files: []string{path}}, bits
		r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]
		if r.Class != want || want != fleet.NoFailure && !strings.Contains(r.Hint, "RSA key of 2048 bits is not used, RequiredRSASize is 3072") {
			t.Errorf("user key, at least %d bits: %v %s (%s)", bits, r.Class, r.Err, r.Hint)
		}
	}
}

// TestExactSSHRSA: a list that names ssh-rsa alone logs in with SHA-1 where the server takes it,
// and not elsewhere, as ssh does.
func TestExactSSHRSA(t *testing.T) {
	path, public := writeRSA(t, 2048)
	for accepted, want := range map[string]fleet.Class{"+ssh-rsa": fleet.NoFailure, "rsa-sha2-512": fleet.AuthFailed} {
		s := sshtest.StartSshd(t, "PubkeyAcceptedAlgorithms "+accepted)
		if err := os.WriteFile(filepath.Join(s.Dir, "authorized_keys"), []byte(sshtest.AuthorizedLine(public)), 0o600); err != nil {
			t.Fatal(err)
		}
		tg := sshdTarget(s)
		tg.Identity, tg.PubkeyAlgorithms = dial.Identity{Files: []string{path}}, []string{"ssh-rsa"}
		r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]
		if r.Class != want {
			t.Errorf("server takes %s: %v %s (%s)", accepted, r.Class, r.Err, r.Hint)
		}
	}
}
