package tidy

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sshpace/internal/base/shell"
	"sshpace/internal/sys/safedir"
)

// maxFileName is the longest file name of the usual file systems.
const maxFileName = 255

// CheckName returns the reason why the name of a host cannot be the name of its file.
func CheckName(host string) error {
	unsafe := func(r rune) bool {
		return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || strings.ContainsRune("._:%-", r))
	}
	reason := ""
	switch {
	case host == "":
		reason = "is empty"
	case len(host) > maxFileName:
		reason = "is too long for a file name"
	case host[0] == '.' || host[0] == '-':
		reason = "starts with " + host[:1]
	case strings.HasSuffix(host, ".old"):
		reason = "ends with .old, which is the name ssh gives to backups"
	case strings.ContainsFunc(host, unsafe):
		reason = "has characters that a host name cannot have"
	default:
		return nil
	}
	return fmt.Errorf("%.80q %s", host, reason)
}

// ConfigPath writes a directory for ssh_config, where "%" starts a token and "${" a variable, and
// where relative names depend on where ssh runs.
func ConfigPath(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(path, "\"\\\n\r\x00") || strings.Contains(path, "${") {
		return "", fmt.Errorf("ssh_config cannot name the directory %q; choose another", dir)
	}
	return strings.ReplaceAll(path, "%", "%%"), nil
}

// Directory is the directory of the files.
type Directory struct{ *safedir.Directory }

// OpenDirectory opens a directory, which must exist.
func OpenDirectory(dir string) (Directory, error) {
	return private(safedir.Open(dir))
}

// MakeDirectory opens a directory, and makes it, 0700, if it is missing.
func MakeDirectory(dir string) (Directory, error) {
	return private(safedir.Make(dir))
}

// private returns an opened directory as a Directory. To the error about one that others could
// plant files in, it adds how to make it private.
func private(directory *safedir.Directory, err error) (Directory, error) {
	if open, ok := errors.AsType[*safedir.UntrustedError](err); ok {
		err = fmt.Errorf("%w; make it private with: chmod go-w %s", err, shell.Word(open.Path))
	}
	return Directory{directory}, err
}

// Replace writes a new file next to the old one and renames it into place. A symbolic link is
// replaced, not followed.
func (f Directory) Replace(name, text string) error {
	temporary := ".tmp-" + rand.Text()
	if err := f.Write(temporary, text); err != nil {
		return err
	}
	if err := f.Rename(temporary, name); err != nil {
		return errors.Join(err, f.Remove(temporary))
	}
	return nil
}

// Write makes a file that does not exist yet. Before it is complete, ssh may read fewer keys from
// it, never others.
func (f Directory) Write(name, text string) error {
	file, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, f.Remove(name))
	}
	return nil
}
