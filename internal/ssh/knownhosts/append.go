package knownhosts

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Append adds one line for host and port to file, as accept-new does, and
// returns when it is on the disk. With hash the name is hashed. A file that does
// not exist is made with mode 0600; of directories only a .ssh is made, with 0700:
// another one that is missing is a typing error. The key must be no certificate:
// the line would make every key of the server look like a changed one.
//
// The line is one write to a file opened for appending, under an advisory lock,
// so that any number of writers, in this process and in others, lose nothing. No
// other line is touched; a last line without a newline gets one. If another
// program has put a new file in place meanwhile, as ssh does under
// UpdateHostKeys, the line is written to that one too. A program that copied the
// file before the write and renames its copy after it still drops the line: ssh
// takes no lock that could prevent that.
func Append(file, host string, port int, key ssh.PublicKey, hash bool) error {
	return add(file, host, port, key, hash, func() (bool, error) { return true, nil })
}

// Record is Append of a key that x does not know, decided under the lock: what
// another run has recorded meanwhile is not recorded twice, and another key of
// the host, or a revocation, is a *Verdict.
func (x *Index) Record(file, host string, port int, key ssh.PublicKey, hash bool) error {
	return add(file, host, port, key, hash, func() (bool, error) {
		err := x.Check(host, port, nil, key)
		if v, ok := errors.AsType[*Verdict](err); ok && v.Kind == Unknown {
			return true, nil
		}
		return false, err
	})
}

// add appends a line for host and port if wanted, which is asked under the lock.
func add(file, host string, port int, key ssh.PublicKey, hash bool, wanted func() (bool, error)) error {
	name := HostPort(host, port)
	if err := checkName(name); err != nil {
		return err
	}
	if hash {
		name = HashName(name)
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return fmt.Errorf("a certificate cannot stand in known_hosts as the key of %s", name)
	}
	if dir := filepath.Dir(file); filepath.Base(dir) == ".ssh" {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	text := name + " " + marshalKey(key)
	for range 10 {
		current, err := appendLine(file, text, wanted)
		if v := (*Verdict)(nil); errors.As(err, &v) {
			return v
		}
		if err != nil {
			return fmt.Errorf("add the host key of %s to %s: %w", HostPort(host, port), file, err)
		}
		if current {
			return nil
		}
	}
	return fmt.Errorf("add the host key of %s to %s: the file is being replaced again and again", HostPort(host, port), file)
}

// checkName refuses what would not stand in a file as one plain name.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a host key needs a host name")
	case len(name) >= maxPattern:
		return fmt.Errorf("host name of %d bytes is too long for known_hosts", len(name))
	case strings.ContainsAny(name[:1], "@#|"), strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == ',' || r == '*' || r == '?' || r == '!'
	}):
		return fmt.Errorf("host name %q cannot stand in known_hosts as a plain name", name)
	}
	return nil
}

// marshalKey is the key as it stands in a line: type and base64.
func marshalKey(key ssh.PublicKey) string {
	return key.Type() + " " + base64.StdEncoding.EncodeToString(key.Marshal())
}

// appendLine writes one line, if it is wanted, and reports whether the file it
// locked is still the one under the name.
func appendLine(file, text string, wanted func() (bool, error)) (current bool, err error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := lockFile(f); err != nil { // released by Close
		return false, err
	}
	newline, err := missingNewline(f)
	if err != nil {
		return false, err
	}
	if yes, err := wanted(); err != nil || !yes {
		return true, err
	}
	if _, err := io.WriteString(f, newline+text+"\n"); err != nil {
		return false, err
	}
	if err := f.Sync(); err != nil {
		return false, err
	}
	return isStill(f, file)
}

// lockFile takes the advisory lock on f, waiting for it.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// missingNewline returns what must come before a new line.
func missingNewline(f *os.File) (string, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil || info.Size() == 0 {
		return "", err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return "", err
	}
	if last[0] == '\n' {
		return "", nil
	}
	return "\n", nil
}

// isStill reports whether path names the file that f is open on.
func isStill(f *os.File, path string) (bool, error) {
	ours, err := f.Stat()
	if err != nil {
		return false, err
	}
	theirs, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, theirs), err
}
