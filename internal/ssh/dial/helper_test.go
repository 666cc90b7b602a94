package dial_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
)

// helper is an in-process server that lives in another process, so that only the client's half is
// measured here.
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
	in, out := waittest.Piped(t, cmd)
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
		ConnectTimeout: 2 * time.Minute, Identity: dial.Identity{Files: []string{user}},
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
		answer(x, release)
		x.Exit(0)
	}}).Start(t)
	fmt.Printf("%d\n%s", s.Port(), sshtest.AuthorizedLine(s.HostKey.PublicKey()))
	io.Copy(io.Discard, os.Stdin)
}

// answer is the helper's shell: "wait", "echo", "bytes N" (lines of text), "held N" (the same, and
// it ends as "wait" does) and "line N" (one line of that length).
func answer(x *sshtest.Session, release string) {
	var n int
	word, _, _ := strings.Cut(x.Command, " ")
	fmt.Sscanf(x.Command, word+" %d", &n)
	chunk := bytes.Repeat([]byte("x"), 32<<10)
	switch word {
	case "wait":
		io.WriteString(x.Stderr(), "waiting\n")
		waitFor(release)
	case "echo":
		io.WriteString(x, "hello\n")
	case "bytes", "held":
		for i := 79; i < len(chunk); i += 80 {
			chunk[i] = '\n'
		}
		fallthrough
	case "line":
		for ; n > 0; n -= len(chunk) {
			if _, err := x.Write(chunk[:min(n, len(chunk))]); err != nil {
				return
			}
		}
		if word == "held" {
			waitFor(release)
		}
	}
}

// byName has some hosts run a command of their own.
type byName struct {
	*dial.Engine
	commands map[string]string
}

func (x byName) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	if c := x.commands[h.Name]; c != "" {
		cmd.Line = c
	}
	return x.Engine.Execute(ctx, h, cmd, a)
}

func waitFor(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
