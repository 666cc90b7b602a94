package safedir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sshpace/internal/base/waittest"
)

// stranger is a user that is neither we nor root.
const stranger = 47110

// give makes another user the owner of a path, not of what a link leads to.
func give(t *testing.T, path string) {
	t.Helper()
	if err := os.Lchown(path, stranger, stranger); err != nil {
		t.Fatal(err)
	}
}

func mode(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func directory(t *testing.T, path ...string) string {
	t.Helper()
	full := filepath.Join(path...)
	if err := os.MkdirAll(full, 0o755); err != nil {
		t.Fatal(err)
	}
	return full
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// untrusted makes sure that err names the path that is not to be relied on.
func untrusted(t *testing.T, err error, path, why string) {
	t.Helper()
	var e *UntrustedError
	if !errors.As(err, &e) || e.Path != path || !strings.Contains(e.Why, why) {
		t.Errorf("error %v, want %s: %s", err, path, why)
	}
}

func TestOurOwnDirectoryIsTrusted(t *testing.T) {
	home := t.TempDir()
	link(t, "real", filepath.Join(home, "relative"))
	link(t, filepath.Join(home, "real"), filepath.Join(home, "absolute"))
	directory(t, home, "real", "state")
	for _, path := range []string{"real/state", "relative/state", "absolute/state", "real/./state/", "real/../relative//state", "real/state/../state"} {
		f, err := Open(home + "/" + path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if want := filepath.Join(home, "real/state"); f.Path() != want {
			t.Errorf("%s is %s, want %s", path, f.Path(), want)
		}
		f.Close()
	}
}

func TestRelativePath(t *testing.T) {
	home := t.TempDir()
	t.Chdir(home)
	f, err := Make("a/b")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Path() != filepath.Join(home, "a/b") {
		t.Errorf("path %s", f.Path())
	}
}

// Whoever owns a directory on the way can put another one in the place of what stands in it.
func TestForeignParentIsRefused(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	for _, depth := range []string{"home", "home/state", "home/state/ours"} {
		root := t.TempDir()
		path := directory(t, root, "home/state/ours")
		give(t, filepath.Join(root, depth))
		_, err := Open(path)
		untrusted(t, err, filepath.Join(root, depth), "another user")
		_, err = Make(filepath.Join(path, "more"))
		untrusted(t, err, filepath.Join(root, depth), "another user")
	}
}

func TestDirectoryThatOthersMayWriteIsRefused(t *testing.T) {
	for _, at := range []string{"home", "home/ours"} {
		root := t.TempDir()
		path := directory(t, root, "home/ours")
		mode(t, filepath.Join(root, at), 0o777)
		_, err := Open(path)
		untrusted(t, err, filepath.Join(root, at), "written by others (mode 0777)")
	}
}

// A sticky directory keeps what is ours in its place, but is none of ours itself.
func TestStickyDirectory(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	root := t.TempDir()
	sticky, path := filepath.Join(root, "tmp"), directory(t, root, "tmp/ours")
	mode(t, sticky, 0o777|os.ModeSticky)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := Resolve(sticky); err != nil {
		t.Errorf("Resolve: %v", err)
	}
	_, err = Open(sticky)
	untrusted(t, err, sticky, "written by others")
	give(t, sticky) // its owner may rename what is in it
	_, err = Open(path)
	untrusted(t, err, sticky, "another user")
}

func TestForeignLinkIsRefused(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	root := t.TempDir()
	directory(t, root, "real")
	path := filepath.Join(root, "link")
	link(t, "real", path)
	give(t, path)
	_, err := Open(path)
	untrusted(t, err, path, "another user")
}

// A link leads to where the same rule holds.
func TestLinkIntoForeignDirectoryIsRefused(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	root := t.TempDir()
	directory(t, root, "theirs/ours")
	link(t, "theirs/ours", filepath.Join(root, "link"))
	give(t, filepath.Join(root, "theirs"))
	_, err := Open(filepath.Join(root, "link"))
	untrusted(t, err, filepath.Join(root, "theirs"), "another user")
}

func TestLoopOfLinksEnds(t *testing.T) {
	root := t.TempDir()
	link(t, "b", filepath.Join(root, "a"))
	link(t, "a", filepath.Join(root, "b"))
	if _, err := Open(filepath.Join(root, "a")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("error %v, want ELOOP", err)
	}
}

// A file is followed to where it is, also where it is missing.
func TestResolveFile(t *testing.T) {
	root := t.TempDir()
	dotfiles := directory(t, root, "dotfiles")
	link(t, "dotfiles/config", filepath.Join(root, "config"))
	for path, want := range map[string]string{
		filepath.Join(root, "config"):  filepath.Join(dotfiles, "config"),
		filepath.Join(root, "missing"): filepath.Join(root, "missing"),
	} {
		if got, err := ResolveFile(path); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", path, got, err, want)
		}
	}
	mode(t, dotfiles, 0o777)
	_, err := ResolveFile(filepath.Join(root, "config"))
	untrusted(t, err, dotfiles, "written by others")
	link(t, "loop", filepath.Join(root, "loop"))
	if _, err := ResolveFile(filepath.Join(root, "loop")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
}

func TestNotADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "/below"} {
		if _, err := Make(path); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("Make %s: %v, want ENOTDIR", path, err)
		}
	}
	if _, err := Open(file + "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of nothing: %v", err)
	}
}

// Missing directories are ours alone, whatever the umask.
func TestMakeIsPrivate(t *testing.T) {
	home := t.TempDir()
	defer syscall.Umask(syscall.Umask(0))
	f, err := Make(filepath.Join(home, "a/b/c"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, path := range []string{"a", "a/b", "a/b/c"} {
		if info, err := os.Stat(filepath.Join(home, path)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// The directory that is held is the one that was opened; that its path leads elsewhere is noticed.
func TestVerify(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	root := t.TempDir()
	path := directory(t, root, "home/ours")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Verify(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".aside"); err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is gone: %v", err)
	}
	directory(t, path)
	untrusted(t, f.Verify(), path, "was replaced by another directory")
	if err := f.WriteFile("file", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".aside/file"); err != nil {
		t.Errorf("the file went elsewhere: %v", err)
	}
	give(t, filepath.Join(root, "home"))
	untrusted(t, f.Verify(), filepath.Join(root, "home"), "another user")
}

// Records are read from files that are our own, even where the directory stood open to others once.
func TestOwnFiles(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"b.jsonl", "a.jsonl", "open.jsonl", "other.txt"} {
		if err := f.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mode(t, f.Path()+"/open.jsonl", 0o666)
	link(t, "a.jsonl", f.Path()+"/link.jsonl")
	if err := syscall.Mkfifo(f.Path()+"/fifo.jsonl", 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := f.Names(".jsonl")
	if err != nil || !slices.Equal(names, []string{"a.jsonl", "b.jsonl"}) {
		t.Errorf("names %q, %v", names, err)
	}
	for _, name := range []string{"open.jsonl", "link.jsonl", "fifo.jsonl"} {
		var e *UntrustedError
		if _, err := f.Own(name); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	own, err := f.Own("a.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if text, err := io.ReadAll(own); err != nil || string(text) != "a.jsonl" {
		t.Errorf("read %q, %v", text, err)
	}
	give(t, f.Path()+"/a.jsonl")
	_, err = f.Own("a.jsonl")
	untrusted(t, err, f.Path()+"/a.jsonl", "another user")
	if names, _ := f.Names(".jsonl"); !slices.Equal(names, []string{"b.jsonl"}) {
		t.Errorf("names %q", names)
	}
}

func TestCreateIsNewAndPrivate(t *testing.T) {
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	link(t, "elsewhere", f.Path()+"/link")
	if _, err := f.Create("link"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link was followed: %v", err)
	}
	file, err := f.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A group is private where nobody but its user and root belongs to it.
func TestGroups(t *testing.T) {
	const passwd = "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/:/bin/sh\nyou:x:1001:1001::/:/bin/sh\nguest:x:1002:1003::/:/bin/sh\nmate:x:1000:1003::/:/bin/sh\n"
	const group = "root:x:0:\nme:x:1000:me,root\nyou:x:1001:\nmates:x:1003:\nstaff:x:50:me\n"
	for name, test := range map[string]struct {
		passwd, group string
		gid           int
		want          bool
	}{
		"our own":                {passwd, group, 1000, true},
		"root's":                 {passwd, group, 0, true},
		"another user's":         {passwd, group, 1001, false},
		"a second user's, too":   {passwd, group, 1003, false},
		"nobody's first":         {passwd, group, 50, false},
		"unknown":                {passwd, group, 77, false},
		"with a member":          {passwd, "me:x:1000:you\n", 1000, false},
		"with one among several": {passwd, "me:x:1000:me,you\n", 1000, false},
		"broken":                 {":::\nx\n", "\n::\n", 0, false},
	} {
		accounts := accounts{users: strings.NewReader(test.passwd), groups: strings.NewReader(test.group), me: 1000}
		if got := accounts.private(test.gid); got != test.want {
			t.Errorf("%s: group %d is private: %v", name, test.gid, got)
		}
	}
}

func TestBase(t *testing.T) {
	env := func(list ...string) func(string) string {
		return func(name string) string {
			for _, entry := range list {
				if value, ok := strings.CutPrefix(entry, name+"="); ok {
					return value
				}
			}
			return ""
		}
	}
	for _, test := range []struct {
		got, want string
	}{
		{State(env("HOME=/home/me")), "/home/me/.local/state/sshpace"},
		{State(env("HOME=/home/me", "XDG_STATE_HOME=/state")), "/state/sshpace"},
		{State(env("HOME=/home/me", "XDG_STATE_HOME=relative")), "/home/me/.local/state/sshpace"},
		{State(env("HOME=relative")), ""},
		{Config(env("HOME=/home/me")), "/home/me/.config/sshpace"},
		{Config(env("HOME=/home/me", "XDG_CONFIG_HOME=/config")), "/config/sshpace"},
		{Config(env()), ""},
		{Cache(env("HOME=/home/me")), "/home/me/.cache/sshpace"},
		{Cache(env("XDG_CACHE_HOME=/cache")), "/cache/sshpace"},
		{Runtime(env("XDG_RUNTIME_DIR=/run/user/1")), "/run/user/1"},
		{Runtime(env("XDG_RUNTIME_DIR=run")), ""},
		{Temporary(env("TMPDIR=/var/tmp")), "/var/tmp"},
		{Temporary(env("TMPDIR=tmp")), "/tmp"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}
