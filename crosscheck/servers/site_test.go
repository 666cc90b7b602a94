package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/ssh/sshtest"
)

// site is a server as it is tried.
type site struct {
	row
	server
	home   string        // of its account
	config string        // ssh_config, in which it is the host "there"
	state  string        // what sshpace keeps
	takes  time.Duration // that a large file took
}

// start runs the server of a row for an account that has a home directory with one called work.
func start(t *testing.T, r row) *site {
	t.Helper()
	home := sshtest.OpenDir(t, 0o755)
	if err := errors.Join(os.MkdirAll(filepath.Join(home, ".config/fish"), 0o755), os.Mkdir(filepath.Join(home, "work"), 0o755)); err != nil {
		t.Fatal(err)
	}
	s := &site{row: r, home: home, state: t.TempDir()}
	own(t, home, 65534)
	s.server = r.start(t, home)
	s.config = filepath.Join(s.state, "ssh_config")
	known := filepath.Join(s.state, "known_hosts")
	config := fmt.Sprintf("Host there\n  HostName 127.0.0.1\n  Port %d\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  IdentityAgent none\n"+
		"  HostKeyAlias there\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile none\n  BatchMode yes\n", s.port, s.user, s.key, known)
	err := errors.Join(os.WriteFile(s.config, []byte(config), 0o600), os.WriteFile(known, []byte("there "+sshtest.AuthorizedLine(s.hostKey)), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// own makes all that is below a directory a user's.
func own(t *testing.T, dir string, user int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, user, user)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// errRefused is the error of an operation that scp and sftp cannot do either, and that was refused
// with a reason.
var errRefused = errors.New("refused")

// visit is an operation with a server.
type visit struct {
	*site
	t           *testing.T
	rng         *rand.Rand
	here, there string // its directories, there on this machine
	name        string // of there, as sshpace and scp write it
	said        string // by sshpace, the last time
}

// login is an error where ssh cannot log in, whatever the server lets it do then.
func (s *site) login(t *testing.T) error {
	v := &visit{site: s, t: t, here: t.TempDir()}
	said, _ := v.program(0, nil, "ssh", "-v", "-n", "-F", s.config, "there", "true")
	if strings.Contains(said, "Authenticated to ") {
		return nil
	}
	return fmt.Errorf("nothing is tried: ssh cannot log in: %s", lastLines(said))
}

// try does an operation. Whatever comes of it, nothing may lie about on the server that is not the
// operation's.
func (s *site) try(t *testing.T, o operation, seed uint64) error {
	v := &visit{site: s, t: t, rng: rand.New(rand.NewPCG(seed, 0)), here: t.TempDir(), name: o.name}
	v.name = strings.ReplaceAll(o.name, " ", "-")
	v.there = filepath.Join(s.root, v.name)
	if err := errors.Join(os.Mkdir(v.there, 0o755), os.Chown(v.there, ownerOf(s.root), -1)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(v.there)
	before := s.names(v.there)
	err := o.do(v)
	strays := slices.DeleteFunc(slices.Sorted(maps.Keys(s.names(v.there))), func(name string) bool { return before[name] })
	if len(strays) > 0 {
		err = errors.Join(fmt.Errorf("left in the home directory: %q", strays), unless(err, errRefused))
	}
	if err != nil && s.lacks != "" && allLines(err, regexp.MustCompile(s.lacks)) {
		err = fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// allLines reports whether each line of an error has a pattern.
func allLines(err error, pattern *regexp.Regexp) bool {
	for line := range strings.Lines(err.Error()) {
		if !pattern.MatchString(line) {
			return false
		}
	}
	return true
}

// unless is an error but for one of a kind.
func unless(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

func ownerOf(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// names are those of all that is below the home directory, and not below an operation's or one
// that a shell makes for itself.
func (s *site) names(without string) map[string]bool {
	names := map[string]bool{}
	for _, root := range []string{s.home, s.root} {
		filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if path == without || path == filepath.Join(s.home, ".local") {
				return fs.SkipDir
			}
			names[path] = err == nil
			return nil
		})
	}
	return names
}

// patience is how long a program may take: none waits for so long unless it hangs.
const patience = 100 * time.Second

// program runs a program, which gets a signal after a time (0: none).
func (v *visit) program(after time.Duration, signal os.Signal, name string, args ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, words bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = v.here, &out, &words
	cmd.Env = append(os.Environ(), "HOME="+v.state, "XDG_STATE_HOME="+v.state)
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return "", err
	}
	if after > 0 {
		defer time.AfterFunc(after, func() { cmd.Process.Signal(signal) }).Stop()
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = errHangs
	}
	return out.String() + words.String(), err
}

var errHangs = errors.New("it hangs")

// sshpace runs a command of it on the server.
func (v *visit) sshpace(args ...string) error {
	_, err := v.signaled(0, nil, args...)
	return err
}

// signaled is sshpace with a signal after a time.
func (v *visit) signaled(after time.Duration, signal os.Signal, args ...string) (took time.Duration, err error) {
	args = append(append([]string{args[0], "-F", v.config, "-w", "there", "-q"}, v.flags...), args[1:]...)
	began := time.Now()
	v.said, err = v.program(after, signal, "sshpace", args...)
	return time.Since(began), err
}

// does runs sshpace, which has to do it where what is to be copied can be copied by scp or sftp,
// and else has to say why not.
func (v *visit) does(reference func() error, args ...string) error {
	err := v.sshpace(args...)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errHangs):
		return fmt.Errorf("%s hangs", args[0])
	case strings.TrimSpace(v.said) == "":
		return fmt.Errorf("%s fails and says nothing: %w", args[0], err)
	}
	said := v.said
	if failed := reference(); failed != nil {
		return fmt.Errorf("%w as %w: %s", errRefused, failed, lastLines(said))
	}
	return fmt.Errorf("%s fails: %s", args[0], lastLines(said))
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// scp copies by scp; there: stands before names of the server.
func (v *visit) scp(args ...string) error {
	said, err := v.program(0, nil, "scp", append([]string{"-q", "-F", v.config}, args...)...)
	if err != nil {
		return fmt.Errorf("scp %w: %s", err, lastLines(said))
	}
	return nil
}

// sftp has sftp do what a line says.
func (v *visit) sftp(line string) error {
	batch := filepath.Join(v.state, "batch")
	if err := os.WriteFile(batch, []byte(line+"\n"), 0o600); err != nil {
		return err
	}
	said, err := v.program(0, nil, "sftp", "-q", "-F", v.config, "-b", batch, "there")
	if err != nil {
		return fmt.Errorf("sftp %w: %s", err, lastLines(said))
	}
	return nil
}
