package pubkey

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// known returns a key that ssh-keygen of OpenSSH 10.5 has made, a message, and its signature of
// that (PROTOCOL.sshsig).
func known(t *testing.T) (key ssh.PublicKey, message []byte, sig ssh.Signature) {
	t.Helper()
	text, err := os.ReadFile("testdata/mldsa44-ed25519.pub")
	if err != nil {
		t.Fatal(err)
	}
	blob, err := base64.StdEncoding.DecodeString(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	if key, err = Parse(blob); err != nil || !bytes.Equal(key.Marshal(), blob) || key.Type() != MLDSA44Ed25519 {
		t.Fatalf("%v, %v", key, err)
	}
	if text, err = os.ReadFile("testdata/mldsa44-ed25519.sig"); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	var signed struct {
		Version                        uint32
		Key, Namespace, Reserved, Hash string
		Signature                      []byte
	}
	if err := ssh.Unmarshal(block.Bytes[len("SSHSIG"):], &signed); err != nil || signed.Key != string(blob) {
		t.Fatal(err)
	}
	if err := ssh.Unmarshal(signed.Signature, &sig); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512([]byte("the quick brown fox\n"))
	return key, append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{signed.Namespace, "", signed.Hash, string(sum[:])})...), sig
}

func TestCompositeOfOpenSSH(t *testing.T) {
	key, message, sig := known(t)
	if err := key.Verify(message, &sig); err != nil {
		t.Fatal(err)
	}
	if key.Verify(append(message, 0), &sig) == nil {
		t.Error("another message is verified")
	}
	// Each half counts.
	for _, at := range []int{0, 1000, 2419, 2420, len(sig.Blob) - 1} {
		wrong := sig
		wrong.Blob = bytes.Clone(sig.Blob)
		wrong.Blob[at] ^= 1
		if key.Verify(message, &wrong) == nil {
			t.Errorf("byte %d of the signature does not count", at)
		}
	}
	for _, at := range []int{100, 1370} {
		blob := key.Marshal()
		blob[at] ^= 1
		if other, err := Parse(blob); err == nil && other.Verify(message, &sig) == nil {
			t.Errorf("byte %d of the key does not count", at)
		}
	}
	for _, wrong := range []ssh.Signature{{Format: ssh.KeyAlgoED25519, Blob: sig.Blob}, {Format: sig.Format, Blob: sig.Blob[:2420]}, {Format: sig.Format, Blob: append(sig.Blob, 0)}, {Format: sig.Format}} {
		if key.Verify(message, &wrong) == nil {
			t.Errorf("verified: %s, %d bytes", wrong.Format, len(wrong.Blob))
		}
	}
}

// A damaged key is none, and all other types are those of x/crypto.
func TestParse(t *testing.T) {
	key, _, _ := known(t)
	blob := key.Marshal()
	for n := range blob {
		if _, err := Parse(blob[:n]); err == nil {
			t.Fatalf("%d bytes are a key", n)
		}
	}
	if _, err := Parse(append(blob, 0)); err == nil {
		t.Error("bytes after the key are ignored")
	}
	if _, err := Parse(ssh.Marshal(struct{ Type, Key string }{MLDSA44Ed25519, "short"})); err == nil {
		t.Error("a short key is a key")
	}
	ed := ssh.Marshal(struct{ Type, Key string }{ssh.KeyAlgoED25519, strings.Repeat("x", 32)})
	if key, err := Parse(ed); err != nil || key.Type() != ssh.KeyAlgoED25519 {
		t.Errorf("%v, %v", key, err)
	}
}
