package check

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/knownhosts"

	"sshpace/internal/ssh/knownhosts/index"
)

// Addition holds the keys of one host to be recorded together.
type Addition struct {
	Host  string
	Port  int
	Keys  []ssh.PublicKey
	Shown []ssh.PublicKey // all that it has shown, for OneMore
}

// name returns the name in the file, unhashed.
func (a *Addition) name() (string, error) {
	name := knownhosts.HostPort(a.Host, a.Port)
	for _, key := range a.Keys {
		if _, ok := key.(*ssh.Certificate); ok {
			return "", fmt.Errorf("a certificate cannot be recorded in known_hosts as the key of %s", name)
		}
	}
	return name, knownhosts.CheckName(name)
}

// lacking returns the keys that x does not have.
func (a *Addition) lacking(x *index.Index) (keys []ssh.PublicKey, err error) {
	for _, key := range a.Keys {
		err := Key(x, a.Host, a.Port, nil, key, Rules{})
		v, isVerdict := errors.AsType[*Verdict](err)
		switch {
		case err == nil:
		case isVerdict && (v.Kind == Unknown || v.OneMore(a.Shown)):
			keys = append(keys, key)
		default:
			return nil, err
		}
	}
	return keys, nil
}

// Lines returns additions as lines of a file, each once.
func Lines(all []Addition, hash bool) (lines []string, err error) {
	seen := map[string]bool{}
	for _, a := range all {
		name, err := a.name()
		if err != nil {
			return nil, err
		}
		for _, key := range a.Keys {
			text := knownhosts.MarshalKey(key)
			if seen[name+" "+text] {
				continue
			}
			seen[name+" "+text] = true
			if hash {
				text = knownhosts.HashName(name) + " " + text
			} else {
				text = name + " " + text
			}
			lines = append(lines, text)
		}
	}
	return lines, nil
}

// Accept adds lines for hosts to file, as ssh does under accept-new, and returns when they are on
// the disk: for all additions or for none. With hash the names are hashed. A missing file is made
// with mode 0600; of directories only a .ssh is made, with 0700: another missing one is a typing
// error. No key may be a certificate: the line would make every key of the server look like a
// changed one.
//
// The check that x does not know the keys happens under the lock: a key that another run has
// recorded meanwhile is not recorded twice, and another key of the host, or a revocation, is a
// *check.Verdict.
//
// The lines are one write to a file opened for appending, under an advisory lock, so that any
// number of writers, in this process and in others, lose nothing. No other line is touched; a last
// line without a newline gets one. If another program has put a new file in place meanwhile, as ssh
// does under UpdateHostKeys, the lines are written to that one too. A program that copied the file
// before the write and renames its copy after it still drops the lines: ssh takes no lock that
// could prevent that.
func Accept(x *index.Index, file string, all []Addition, hash bool) (added int, err error) {
	if _, err := Lines(all, false); err != nil {
		return 0, err
	}
	wanted := func() (text string, err error) {
		x.Expire()
		lacking := slices.Clone(all)
		for i := range lacking {
			if lacking[i].Keys, err = all[i].lacking(x); err != nil {
				return "", err
			}
		}
		lines, err := Lines(lacking, hash)
		if added = len(lines); added == 0 {
			return "", err
		}
		return strings.Join(lines, "\n") + "\n", err
	}
	if dir := filepath.Dir(file); filepath.Base(dir) == ".ssh" {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
	}
	what := fmt.Sprintf("add host keys to %s", file)
	if len(all) == 1 {
		what = fmt.Sprintf("add the host key of %s to %s", knownhosts.HostPort(all[0].Host, all[0].Port), file)
	}
	for range 10 {
		current, err := appendLines(file, wanted)
		if v, ok := errors.AsType[*Verdict](err); ok {
			return 0, v
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", what, err)
		}
		if current {
			return added, nil
		}
	}
	return 0, fmt.Errorf("%s: the file is being replaced again and again", what)
}

// appendLines writes the lines that are wanted, and reports whether the file it locked is still the
// one under the name.
func appendLines(file string, wanted func() (string, error)) (current bool, err error) {
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
	text, err := wanted()
	if err != nil || text == "" {
		return true, err
	}
	if err := appendWhole(f, newline+text); err != nil {
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
