package openssh

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
)

// cacheIn is an empty cache directory.
func cacheIn(t *testing.T) (directory string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	return filepath.Join(home, "sshpace")
}

// nothingStarts is a context in which no process can be started.
func nothingStarts(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// askAll asks what every kind of command asks of ssh.
func askAll(ctx context.Context) error {
	p, err := FindClient(ctx, "")
	if err != nil {
		return err
	}
	_, err = p.Query(ctx)
	return err
}

func TestAskedOnce(t *testing.T) {
	cacheIn(t)
	if err := askAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := askAll(nothingStarts(t)); err != nil {
		t.Errorf("asked again: %v", err)
	}
	t.Setenv("LD_LIBRARY_PATH", "/x")
	if _, err := sourceOf(t.Context(), "/usr/bin/ssh"); err == nil {
		t.Error("kept for an environment that can have other libraries")
	}
}

// Where nothing can be kept, all is asked again.
func TestNowhereToKeep(t *testing.T) {
	t.Setenv("HOME", "/")
	for _, directory := range []string{"", "/dev/null", "relative"} {
		t.Setenv("XDG_CACHE_HOME", directory)
		for range 2 {
			if err := askAll(t.Context()); err != nil {
				t.Errorf("%q: %v", directory, err)
			}
		}
		if err := askAll(nothingStarts(t)); err == nil {
			t.Errorf("%q: not asked again", directory)
		}
	}
}

// said1 keeps an answer of a program of its own, which is a file that nobody runs.
func said1(t *testing.T, more ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "ssh")
	put(t, program, "the program OpenSSH_9.9p9 of this test")
	k := kept{Parts: map[string]string{}, Answers: map[string]answer{question(versionArgs): {Err: []byte("OpenSSH_9.9p9, OpenSSL 4\n")}}}
	for _, part := range append(more, program) {
		k.Parts[part], _ = stateOf(part)
	}
	if !k.holds(program) {
		t.Fatal("not worth keeping")
	}
	k.write(program)
	if recall(program) == nil {
		t.Fatal("not kept")
	}
	return program
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// Whatever happens to a program or to what it is made of, it is asked again at once, though sizes
// and times be the same.
func TestChangedProgramIsAskedAgain(t *testing.T) {
	cacheIn(t)
	library := filepath.Join(t.TempDir(), "libcrypto.so.3")
	for name, change := range map[string]func(path string) error{
		"written again": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[0] ^= 1
			put(t, path, string(text))
			return os.Chtimes(path, info.ModTime(), info.ModTime())
		},
		"replaced": func(path string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			put(t, path+".new", string(text))
			return os.Rename(path+".new", path)
		},
		"a link elsewhere": func(path string) error {
			put(t, path+".other", "OpenSSH_1.0")
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(path+".other", path)
		},
		"removed": os.Remove,
	} {
		for _, what := range []string{"program", "library"} {
			put(t, library, "cryptography")
			path := said1(t, library)
			at := map[string]string{"program": path, "library": library}[what]
			time.Sleep(20 * time.Millisecond) // more than a tick of the clock of files
			if err := change(at); err != nil {
				t.Fatal(err)
			}
			if recall(path) != nil {
				t.Errorf("%s %s: the old answer holds", what, name)
			}
			os.Remove(library)
		}
	}
	missing := filepath.Join(t.TempDir(), "ld.so.preload")
	path := said1(t, missing)
	if put(t, missing, ""); recall(path) != nil {
		t.Error("a file that was missing has come: the old answer holds")
	}
}

// What could be from anybody, or is not whole, counts for nothing, and is replaced.
func TestTamperedAnswers(t *testing.T) {
	directory := cacheIn(t)
	path := said1(t)
	state, _ := stateOf(path)
	name := filepath.Join(directory, keptName(path, state))
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for i := range text {
		wrong := append([]byte(nil), text...)
		wrong[i] ^= 0x20
		put(t, name, string(wrong))
		if got := recall(path); got != nil {
			t.Fatalf("byte %d changed: %v", i, got)
		}
		put(t, name, string(text[:i]))
		if got := recall(path); got != nil {
			t.Fatalf("cut at byte %d: %v", i, got)
		}
	}
	put(t, name, string(text))
	for what, change := range map[string]struct{ do, undo func() error }{
		"file open to all":      {func() error { return os.Chmod(name, 0o602) }, func() error { return os.Chmod(name, 0o600) }},
		"directory open to all": {func() error { return os.Chmod(directory, 0o777) }, func() error { return os.Chmod(directory, 0o700) }},
		"a link": {func() error {
			return cmpErr(os.Rename(name, name+"~"), os.Symlink(name+"~", name))
		}, func() error { return os.Rename(name+"~", name) }},
		"a pipe": {func() error {
			return cmpErr(os.Remove(name), syscall.Mkfifo(name, 0o600))
		}, func() error { return cmpErr(os.Remove(name), os.WriteFile(name, text, 0o600)) }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		if recall(path) != nil {
			t.Errorf("%s: believed", what)
		}
		if err := change.undo(); err != nil {
			t.Fatal(err)
		}
		if recall(path) == nil {
			t.Errorf("%s is mended: not believed", what)
		}
	}
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAnswersOfAnotherUser(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	directory := cacheIn(t)
	path := said1(t)
	state, _ := stateOf(path)
	for _, at := range []string{filepath.Join(directory, keptName(path, state)), directory, filepath.Dir(directory)} {
		if err := os.Chown(at, 47110, 47110); err != nil {
			t.Fatal(err)
		}
		if recall(path) != nil {
			t.Errorf("believed, although %s is another user's", at)
		}
		if err := os.Chown(at, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// Of a script, or a program that starts another one, nothing is kept: what is behind it can change
// unseen.
func TestWhatIsBehindMayChange(t *testing.T) {
	cacheIn(t)
	dir := t.TempDir()
	behind, script := filepath.Join(dir, "behind"), filepath.Join(dir, "ssh")
	put(t, script, "#!/bin/sh\necho \"$(cat "+behind+"), OpenSSL 1\" >&2\n")
	for _, version := range []string{"OpenSSH_9.2p1", "OpenSSH_9.3p1"} {
		put(t, behind, version)
		if p, err := find(t.Context(), "ssh", script); err != nil || p.Version != version {
			t.Errorf("%q, %v, want %s", p.Version, err, version)
		}
	}
	starter := filepath.Join(dir, "starter")
	put(t, starter, "starts another")
	state, _ := stateOf(starter)
	k := kept{map[string]string{starter: state}, map[string]answer{question(versionArgs): {Err: []byte("OpenSSH_9.2p1, OpenSSL 3\n")}}}
	if k.holds(starter) {
		t.Error("a program that does not hold the version that it tells is taken for ssh")
	}
}

// The answers depend on the libraries that ssh loads.
func TestLibrariesAreParts(t *testing.T) {
	known, err := sourceOf(t.Context(), "/usr/bin/ssh")
	if err != nil {
		t.Fatal(err)
	}
	libraries := 0
	for part := range known.states {
		if strings.Contains(part, "/libcrypto.so") || strings.Contains(part, "/libc.so") {
			libraries++
		}
	}
	if libraries != 2 {
		t.Errorf("depends on %v", known.states)
	}
}

// Only what ssh says of itself lasts: what it lacks for the moment does not.
func TestFailuresPass(t *testing.T) {
	for want, list := range map[bool][]answer{
		true: {{}, {Exit: 255, Err: []byte("command-line: line 0: Bad configuration option: moon\n")}},
		false: {{Exit: 1}, {Exit: 255}, {Exit: 255, Err: []byte("xmalloc: out of memory\n")}, {Exit: 255, Err: []byte("No user exists for uid 7\n")},
			{Exit: 127, Err: []byte("command-line")}},
	} {
		for _, a := range list {
			if a.lasts() != want {
				t.Errorf("%d %s: %v", a.Exit, a.Err, !want)
			}
		}
	}
}

// What is kept does not grow without end.
func TestKeptIsBounded(t *testing.T) {
	directory := cacheIn(t)
	for range 2 * maxPrograms {
		said1(t)
	}
	if files, err := os.ReadDir(directory); err != nil || len(files) != maxPrograms {
		t.Errorf("%d files, %v", len(files), err)
	}
	s := &answers{known: map[string]answer{}, answers: map[string]answer{"new": {}}}
	for i := range maxAnswers - 1 {
		s.known[fmt.Sprint(i)] = answer{}
	}
	if got := s.toKeep(); len(got) != maxAnswers {
		t.Errorf("%d answers", len(got))
	}
	s.answers["newer"] = answer{}
	if got := s.toKeep(); !maps.EqualFunc(got, s.answers, func(a, b answer) bool { return true }) {
		t.Errorf("%d answers, want those of this run", len(got))
	}
	path := said1(t)
	k := kept{Parts: map[string]string{}, Answers: map[string]answer{"": {Out: make([]byte, maxKept)}}}
	k.Parts[path], _ = stateOf(path)
	if k.write(path); len(recall(path)) != 1 {
		t.Error("a file without bound")
	}
}
