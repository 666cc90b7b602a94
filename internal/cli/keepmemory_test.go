package cli_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// TestKeepHoldsNoKey: what keeps connections has no private key and no passphrase in its memory, as
// run has while it runs; nor has it when a lost connection is back.
func TestKeepHoldsNoKey(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	dir, secrets := t.TempDir(), map[string][]byte{"passphrase": []byte("correct horse 4711 battery")}
	public, small, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	secrets["seed"] = small.Seed()
	for i, p := range large.Primes {
		big := p.Bytes()
		little := slices.Clone(big)
		slices.Reverse(little)
		secrets[fmt.Sprint("prime ", i)], secrets[fmt.Sprint("number ", i)] = big, little
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(small, "", secrets["passphrase"])
	if err != nil {
		t.Fatal(err)
	}
	open, err := ssh.MarshalPrivateKey(large, "")
	if err != nil {
		t.Fatal(err)
	}
	var allowed []byte
	for _, key := range []any{public, &large.PublicKey} {
		k, err := ssh.NewPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, ssh.MarshalAuthorizedKey(k)...)
	}
	files := map[string][]byte{
		"locked": pem.EncodeToMemory(locked), "open": pem.EncodeToMemory(open), "allowed": allowed,
		"askpass": []byte("#!/bin/sh\nexec cat " + dir + "/pass\n"), "pass": secrets["passphrase"],
	}
	s := sshtest.StartSshd(t, "AuthorizedKeysFile "+dir+"/allowed")
	files["known"] = []byte("* " + sshtest.AuthorizedLine(s.HostKey))
	files["config"] = fmt.Appendf(nil, "Host 127.0.1.1\n IdentityFile %[1]s/locked\nHost 127.0.1.2\n IdentityFile %[1]s/open\nHost *\n Port %[2]d\n User %[3]s\n"+
		" UserKnownHostsFile %[1]s/known\n GlobalKnownHostsFile none\n IdentityAgent none\n", dir, s.Port, s.User)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path, err := exec.LookPath("sshpace")
	if err != nil {
		t.Fatal(err)
	}
	begin := func(command ...string) (pid int) {
		cmd := exec.Command(path, append(command, "-F", dir+"/config", "-w", "127.0.1.[1-2]")...)
		if command[0] == "run" {
			cmd.Args = append(cmd.Args, "--", "echo started; sleep 60")
		}
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "SSH_ASKPASS="+dir+"/askpass", "SSH_ASKPASS_REQUIRE=force")
		said, err := os.Create(filepath.Join(dir, command[0]))
		if err != nil {
			t.Fatal(err)
		}
		defer said.Close()
		cmd.Stdout, cmd.Stderr = said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd.Process.Pid
	}
	says := func(command, text string, count int) {
		t.Helper()
		if !waittest.Comes(func() bool {
			said, _ := os.ReadFile(filepath.Join(dir, command))
			return strings.Count(string(said), text) >= count
		}) {
			said, _ := os.ReadFile(filepath.Join(dir, command))
			t.Fatalf("%s: %s", command, said)
		}
	}
	holds := func(pid int) (found []string) {
		memory := memoryOf(t, pid)
		for name, secret := range secrets {
			if bytes.Contains(memory, secret) {
				found = append(found, name)
			}
		}
		slices.Sort(found)
		return found
	}
	run := begin("run")
	says("run", "started", 2)
	if found := holds(run); !slices.Contains(found, "seed") || !slices.ContainsFunc(found, func(name string) bool { return strings.Contains(name, " ") }) {
		t.Errorf("run holds %q: the search is worth nothing", found)
	}
	keep := begin("keep", "--foreground")
	says("keep", "2 ok", 1)
	if found := holds(keep); len(found) > 0 {
		t.Errorf("keep holds %q", found)
	}
	s.Signal(t, syscall.SIGTERM)
	says("keep", "127.0.1.2: back", 1)
	says("keep", "127.0.1.1: lost: connection lost; waits for --refresh", 1)
	if found := holds(keep); len(found) > 0 {
		t.Errorf("keep holds %q after a loss", found)
	}
	left, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", keep))
	if err != nil || len(left) > 0 {
		t.Errorf("processes %s are left, %v", left, err)
	}
}

// memoryOf returns what a process can write to.
func memoryOf(t *testing.T, pid int) []byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	var all []byte
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") {
			continue
		}
		part, _ := io.ReadAll(io.NewSectionReader(memory, from, to-from))
		all = append(all, part...)
	}
	return all
}
