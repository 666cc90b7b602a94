package dial_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/dial"
	"sshpace/internal/sshtest"
)

// helper is an in-process server that lives in another process, so that only
// the client's half is measured here.
type helper struct {
	target  dial.Target
	release string // the command "wait" ends when this file appears
}

const helperEnv = "SSHPACE_TEST_SERVER"

// startHelper runs this test binary as a server.
func startHelper(t testing.TB) helper {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := helper{release: filepath.Join(t.TempDir(), "release")}
	cmd := exec.Command(exe, "-test.run=^TestHelperServer$")
	cmd.Env = append(os.Environ(), helperEnv+"="+h.release)
	in, err := cmd.StdinPipe() // its end tells the server to go
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	line := bufio.NewReader(out)
	var port int
	if _, err := fmt.Fscanln(line, &port); err != nil {
		t.Fatal(err)
	}
	text, err := line.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		t.Fatal(err)
	}
	user, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	h.target = dial.Target{
		User: "tester", Port: port, HostKeys: fixedKey{key}, KeyExchanges: []string{"curve25519-sha256"},
		ConnectTimeout: 20 * time.Second, Identity: dial.Identity{Files: []string{user}},
	}
	return h
}

// TestHelperServer is the server of startHelper; on its own it has nothing to do.
func TestHelperServer(t *testing.T) {
	release := os.Getenv(helperEnv)
	if release == "" {
		return
	}
	s := (&sshtest.Server{Exec: func(x *sshtest.Session) {
		if x.Command == "wait" {
			x.Stderr().Write([]byte("waiting\n"))
			waitFor(release)
		}
		x.Exit(0)
	}}).Start(t)
	fmt.Printf("%d\n%s", s.Port(), sshtest.AuthorizedLine(s.HostKey.PublicKey()))
	io.Copy(io.Discard, os.Stdin)
}

func waitFor(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
