package sshtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/knownhosts"
)

// KeyServer is a private sshd with an Ed25519 key and an ECDSA key.
type KeyServer struct {
	*Sshd
	Certificate string // where a certificate of its Ed25519 key may stand
	ecdsa       ssh.PublicKey
}

// StartKeyServer runs the real sshd until the test ends.
func StartKeyServer(t testing.TB) *KeyServer {
	t.Helper()
	dir := t.TempDir()
	second := filepath.Join(dir, "ecdsa")
	if out, err := Keygen("-q", "-t", "ecdsa", "-N", "", "-f", second); err != nil {
		t.Fatal(err, out)
	}
	s := &KeyServer{Certificate: filepath.Join(dir, "host-cert.pub")}
	public, err := os.ReadFile(second + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	s.ecdsa = ParseKey(t, string(public))
	s.Sshd = StartSshd(t, "HostKey "+second, "HostCertificate "+s.Certificate)
	return s
}

// KeyText is the public host key of one type ("ed" or "ec") as it stands in a line.
func (s *KeyServer) KeyText(kind string) string {
	return knownhosts.MarshalKey(map[string]ssh.PublicKey{"ed": s.HostKey, "ec": s.ecdsa}[kind])
}

// SSH runs the real ssh with strict host keys and these options, to address.
func (s *KeyServer) SSH(t testing.TB, address string, options ...string) (output string, code int) {
	t.Helper()
	return s.SSHWith(t, "none", address, options...)
}

// SSHWith is SSH with a configuration file.
func (s *KeyServer) SSHWith(t testing.TB, config, address string, options ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	args := []string{"-F", config, "-p", fmt.Sprint(s.Port), "-i", s.Key, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
		"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"}
	for _, option := range append(options, "GlobalKnownHostsFile=none") {
		args = append(args, "-o", option)
	}
	out, err := exec.CommandContext(ctx, "ssh", append(args, address, "true")...).CombinedOutput()
	return string(out), exitCode(t, err)
}
