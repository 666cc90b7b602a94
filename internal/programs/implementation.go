//go:build linux

// Package programs knows SSH programs of several makers: how to set the port, the key, the host
// key, the cipher and the MAC of each, and which of these cannot be set. It pairs clients with
// private servers and measures every pair in turns.
package programs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/sys/proc"
)

// Setup is shared by all implementations: the site of their servers, and an account.
type Setup struct {
	loopback.Site
	User    string // the account that logs in: our own
	Home    string // its home directory, where some servers look for keys
	Connect time.Duration

	serial int // of files
}

// absent returns the error for a program that is not installed.
func absent(program, pkg string) error {
	return fmt.Errorf("%s is not installed (package %s)", program, pkg)
}

// versionIn returns the first line of an answer with a mark, and the text after the mark.
func versionIn(answer, mark string) string {
	for line := range strings.Lines(answer) {
		if _, rest, ok := strings.Cut(line, mark); ok {
			version, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			return strings.TrimRight(version, ",")
		}
	}
	return ""
}

// convert lets a maker's own tool write a key in its own format, once.
func (b *Setup) convert(ctx context.Context, to string, argv ...string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if proc.Find(argv[0]) == "" {
		return errors.New(argv[0] + " is not installed: it has to convert the key of this run")
	}
	argv[0] = proc.Find(argv[0])
	if said, err := proc.Ask(ctx, argv...); err != nil {
		return fmt.Errorf("%s: %s", filepath.Base(argv[0]), strings.ReplaceAll(said, "\n", " "))
	}
	return os.Chmod(to, 0o600)
}

// hostKey returns the public host key of this run.
func (b *Setup) hostKey() (ssh.PublicKey, error) {
	text, err := os.ReadFile(b.Keys.KnownHosts)
	if err != nil {
		return nil, err
	}
	_, _, key, _, _, err := ssh.ParseKnownHosts(text)
	return key, err
}

// fingerprint returns the host key's, as OpenSSH and PuTTY write it after "SHA256:".
func (b *Setup) fingerprint() (string, error) {
	key, err := b.hostKey()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(key.Marshal())
	return base64.RawStdEncoding.EncodeToString(sum[:]), nil
}

// directory makes a private directory below that of the run; it may be there already.
func (b *Setup) directory(names ...string) (string, error) {
	path := filepath.Join(append([]string{b.Dir.Path}, names...)...)
	return path, os.MkdirAll(path, 0o700)
}

// put writes a new file of the run.
func put(path, text string) error {
	err := os.Remove(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// Order is the task of a client: where to log in and what to move there.
type Order struct {
	Host, Port string
	Want       alg.Suite // "" in it: whatever the client likes best
	From       string    // local file
	// Remote is the command that reads the client's input at the server; To is the destination for
	// a client that copies files.
	Remote, To string
}

// process carries out an order.
type process = transfer.Process
