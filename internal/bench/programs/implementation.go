//go:build linux

// Package programs knows SSH programs of several makers: how each of them
// is told the port, the key, the host key, the cipher and the MAC, and what of
// that it cannot be told. It pairs clients with private servers and measures every
// pair in turns.
package programs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// Setup is what all implementations share: a private folder, one pair of keys,
// an account, and a program of ours at either end.
type Setup struct {
	Dir     *safedir.Workdir
	Keys    loopback.Keys
	Spawner *proc.Spawner
	User    string                        // the account that logs in: our own
	Home    string                        // its home folder, where some servers look for keys
	Helper  func(program string) []string // command line of a helper program of ours
	Connect time.Duration

	serial int // of files
}

// absent is the error for a program that is not installed.
func absent(program, pkg string) error {
	return fmt.Errorf("%s is not installed (package %s)", program, pkg)
}

// sbin are folders of servers that ordinary users seldom have on their PATH.
var sbin = []string{"/usr/sbin", "/usr/local/sbin", "/usr/local/bin"}

// locate finds a program; "" if it is not installed.
func locate(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, dir := range sbin {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// answerLimit is how long a program may take to answer a question about itself,
// and how much of the answer is read.
const (
	answerLimit = 10 * time.Second
	answerSize  = 64 << 10
)

// ask runs a program for what it says of itself, on both of its streams.
func ask(ctx context.Context, argv ...string) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer read.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = write, write
	proc.Lead(cmd)
	err = cmd.Start()
	write.Close()
	if err != nil {
		return "", err
	}
	answer, _ := file.ReadAll(read, argv[0], answerSize)
	return strings.TrimSpace(string(answer)), cmd.Wait()
}

// versionIn is the first line of an answer that names something, and in it what
// follows the mark.
func versionIn(answer, mark string) string {
	for line := range strings.Lines(answer) {
		if _, rest, ok := strings.Cut(line, mark); ok {
			version, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			return strings.TrimRight(version, ",")
		}
	}
	return ""
}

// convert has a maker's own tool write a key in its own format, once.
func (b *Setup) convert(ctx context.Context, to string, argv ...string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if locate(argv[0]) == "" {
		return errors.New(argv[0] + " is not installed: it has to convert the key of this run")
	}
	argv[0] = locate(argv[0])
	if said, err := ask(ctx, argv...); err != nil {
		return fmt.Errorf("%s: %s", filepath.Base(argv[0]), strings.ReplaceAll(said, "\n", " "))
	}
	return os.Chmod(to, 0o600)
}

// hostKey is the public host key of this run.
func (b *Setup) hostKey() (ssh.PublicKey, error) {
	text, err := os.ReadFile(b.Keys.KnownHosts)
	if err != nil {
		return nil, err
	}
	_, _, key, _, _, err := ssh.ParseKnownHosts(text)
	return key, err
}

// fingerprint is the host key's, as OpenSSH and PuTTY write it behind "SHA256:".
func (b *Setup) fingerprint() (string, error) {
	key, err := b.hostKey()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(key.Marshal())
	return base64.RawStdEncoding.EncodeToString(sum[:]), nil
}

// folder makes a private folder below that of the run; it may be there already.
func (b *Setup) folder(names ...string) (string, error) {
	path := filepath.Join(append([]string{b.Dir.Path}, names...)...)
	return path, os.MkdirAll(path, 0o700)
}

// put writes a file of the run anew.
func put(path, text string) error {
	err := os.Remove(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// Order is how a client is told where to log in and what to move there.
type Order struct {
	Host, Port string
	Want       alg.Suite // "" in it: whatever the client likes best
	From       string    // local file
	// Remote is the command that takes what a client sends to the standard input
	// of a command; To is where a client that copies files puts them.
	Remote, To string
}

// process is how a client carries out an order.
type process = transfer.Process
