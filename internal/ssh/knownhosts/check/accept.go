package check

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/knownhosts"

	"sshpace/internal/ssh/knownhosts/index"
)

// Accept adds one line for host and port to file, as ssh does under accept-new, and returns when it
// is on the disk. With hash the name is hashed. A missing file is made with mode 0600; of
// directories only a .ssh is made, with 0700: another missing one is a typing error. The key must
// not be a certificate: the line would make every key of the server look like a changed one.
//
// The check that x does not know the key happens under the lock: a key that another run has
// recorded meanwhile is not recorded twice, and another key of the host, or a revocation, is a
// *check.Verdict.
//
// The line is one write to a file opened for appending, under an advisory lock, so that any number
// of writers, in this process and in others, lose nothing. No other line is touched; a last line
// without a newline gets one. If another program has put a new file in place meanwhile, as ssh does
// under UpdateHostKeys, the line is written to that one too. A program that copied the file before
// the write and renames its copy after it still drops the line: ssh takes no lock that could
// prevent that.
func Accept(x *index.Index, file, host string, port int, key ssh.PublicKey, hash bool) error {
	wanted := func() (bool, error) {
		x.Expire()
		err := Key(x, host, port, nil, key, Rules{})
		if v, ok := errors.AsType[*Verdict](err); ok && v.Kind == Unknown {
			return true, nil
		}
		return false, err
	}
	name := knownhosts.HostPort(host, port)
	if err := knownhosts.CheckName(name); err != nil {
		return err
	}
	if hash {
		name = knownhosts.HashName(name)
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return fmt.Errorf("a certificate cannot be recorded in known_hosts as the key of %s", name)
	}
	if dir := filepath.Dir(file); filepath.Base(dir) == ".ssh" {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	text := name + " " + knownhosts.MarshalKey(key)
	for range 10 {
		current, err := appendLine(file, text, wanted)
		if v, ok := errors.AsType[*Verdict](err); ok {
			return v
		}
		if err != nil {
			return fmt.Errorf("add the host key of %s to %s: %w", knownhosts.HostPort(host, port), file, err)
		}
		if current {
			return nil
		}
	}
	return fmt.Errorf("add the host key of %s to %s: the file is being replaced again and again", knownhosts.HostPort(host, port), file)
}

// appendLine writes one line, if it is wanted, and reports whether the file it locked is still the
// one under the name.
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
	if err := appendWhole(f, newline+text+"\n"); err != nil {
		return false, err
	}
	return isStill(f, file)
}

// appendWhole writes a text and flushes it to the disk, or removes the part that was written: half
// a line would be another key of the host. If a program that takes no lock has written after it,
// nothing is removed.
func appendWhole(f *os.File, text string) error {
	before, err := f.Stat()
	if err != nil {
		return err
	}
	n, err := io.WriteString(f, text)
	if err == nil {
		err = f.Sync()
	}
	if after, statErr := f.Stat(); err != nil && statErr == nil && after.Size() == before.Size()+int64(n) {
		err = errors.Join(err, f.Truncate(before.Size()))
	}
	return err
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
