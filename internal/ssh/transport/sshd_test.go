package transport_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/ssh/transport"
)

func dialSshd(t testing.TB, s *sshtest.Sshd) *transport.Conn {
	t.Helper()
	raw, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	c, err := transport.Handshake(raw, &transport.Config{Version: "SSH-2.0-test", HostKeys: []string{ssh.KeyAlgoED25519}, HostKey: func(ssh.PublicKey) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sshdKey(t testing.TB, s *sshtest.Sshd) ssh.MultiAlgorithmSigner {
	t.Helper()
	text, err := os.ReadFile(s.Key)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return algorithmSigner(t, key, ssh.KeyAlgoED25519)
}

// TestAheadOfRefusal: sshd refuses a key behind which a command was sent; the command does not run
// for it, and runs once for the next key.
func TestAheadOfRefusal(t *testing.T) {
	s := sshtest.StartSshd(t)
	log := filepath.Join(t.TempDir(), "log")
	c := dialSshd(t, s)
	err := c.Authenticate(transport.Login{
		User: s.User, Direct: true, Ahead: &transport.Command{Line: "echo ran >>" + log, EOF: true},
		Keys: []ssh.MultiAlgorithmSigner{algorithmSigner(t, sshtest.NewKey(t), ssh.KeyAlgoED25519), sshdKey(t, s)},
	})
	if err != nil || !c.Asked() {
		t.Fatalf("asked %v, %v", c.Asked(), err)
	}
	if err := wait(c, s.User, "echo ran >>"+log); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(log); string(text) != "ran\n" {
		t.Errorf("it ran: %q", text)
	}
	c = dialSshd(t, s)
	err = c.Authenticate(transport.Login{User: s.User, Direct: true, Ahead: &transport.Command{Line: "echo again >>" + log},
		Keys: []ssh.MultiAlgorithmSigner{algorithmSigner(t, sshtest.NewKey(t), ssh.KeyAlgoED25519)}})
	if err == nil || c.Asked() {
		t.Errorf("a refused login: %v, asked %v", err, c.Asked())
	}
	if text, _ := os.ReadFile(log); string(text) != "ran\n" {
		t.Errorf("after a refused login: %q", text)
	}
}

// wait asks for the command in the same words and waits for its end.
func wait(c *transport.Conn, user, line string) error {
	conn := c.Mux(user)
	defer func() { conn.Close(); <-conn.Done() }()
	ch, in, err := conn.OpenChannel("session", nil)
	if err != nil {
		return err
	}
	go ssh.DiscardRequests(in)
	ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{line}))
	if err != nil || !ok {
		return fmt.Errorf("exec: %v, %w", ok, err)
	}
	ch.CloseWrite()
	_, err = io.Copy(io.Discard, ch)
	return err
}

// TestNotEarly: a command that may not leave with the login leaves behind it, once it has
// succeeded: one that is refused cannot have run it.
func TestNotEarly(t *testing.T) {
	s := sshtest.StartSshd(t)
	asked := 0
	login := transport.Login{User: s.User, Direct: true, Ahead: &transport.Command{Line: "true", EOF: true}, Keys: []ssh.MultiAlgorithmSigner{sshdKey(t, s)},
		Early: func() bool { asked++; return false }}
	c := dialSshd(t, s)
	if err := c.Authenticate(login); err != nil || asked != 1 || !c.Asked() {
		t.Fatalf("%v; Early was asked %d times, the command was sent: %v", err, asked, c.Asked())
	}
	if err := wait(c, s.User, "true"); err != nil {
		t.Error(err)
	}
	c = dialSshd(t, s)
	login.Keys = []ssh.MultiAlgorithmSigner{algorithmSigner(t, sshtest.NewKey(t), ssh.KeyAlgoED25519)}
	if err := c.Authenticate(login); err == nil || c.Asked() {
		t.Errorf("%v; a command was sent with a login that was refused: %v", err, c.Asked())
	}
}

// TestOtherWords: what was sent ahead cannot be asked for in other words.
func TestOtherWords(t *testing.T) {
	s := sshtest.StartSshd(t)
	c := dialSshd(t, s)
	if err := c.Authenticate(transport.Login{User: s.User, Direct: true, Ahead: &transport.Command{Line: "true", EOF: true}, Keys: []ssh.MultiAlgorithmSigner{sshdKey(t, s)}}); err != nil {
		t.Fatal(err)
	}
	if err := wait(c, s.User, "false"); err == nil {
		t.Error("another command was taken for the one that was sent")
	}
}

// TestRekeyBySshd: OpenSSH exchanges keys anew in the middle of output.
func TestRekeyBySshd(t *testing.T) {
	s := sshtest.StartSshd(t, "RekeyLimit 64K")
	c := dialSshd(t, s)
	const line = "head -c 1000000 /dev/zero"
	if err := c.Authenticate(transport.Login{User: s.User, Direct: true, Ahead: &transport.Command{Line: line, EOF: true}, Keys: []ssh.MultiAlgorithmSigner{sshdKey(t, s)}}); err != nil {
		t.Fatal(err)
	}
	if err := wait(c, s.User, line); err != nil {
		t.Error(err)
	}
}
