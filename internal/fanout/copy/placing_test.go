package copy

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
)

// placed copies files in a way, all with a mode if that is not 0.
func (s *server) place(t *testing.T, how Placing, mode fs.FileMode, dest string, names ...string) (string, error) {
	t.Helper()
	sources := NewSources(names)
	sources.Mode = mode
	how.Exact = how.Owner != "" || mode != 0
	u := Upload{Placing: how, Dest: dest, Sources: sources.Of}
	err := u.Dialogue(t.Context(), host.Host{Name: "h"}, s)
	return s.heard(), err
}

// holdsText fails unless a file holds a text.
func holdsText(t *testing.T, name, want string) {
	t.Helper()
	if data, err := os.ReadFile(name); string(data) != want {
		t.Errorf("%s holds %q, want %q; %v", name, data, want, err)
	}
}

// A replaced file stays beside the new one, with all that it had, whatever the server can do; an
// equal one is not kept again.
func TestBackup(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	for _, denied := range []string{"", "hardlink", "posix-rename", "hardlink,posix-rename", "hardlink,posix-rename,rename"} {
		t.Run(denied, func(t *testing.T) {
			src, dest := replacing(t)
			os.Remove(src + "/was file") // not every server puts a link there
			last := ""
			for i := range 2 {
				old := fmt.Sprintf("content %d", i)
				write(t, dest+"/src/a", old, 0o604)
				if err := os.Chown(dest+"/src/a", 1234, 1235); err != nil {
					t.Fatal(err)
				}
				s := (&server{denied: denied}).start(t, "")
				said, err := s.place(t, Placing{Backup: "~"}, 0, dest, src)
				if strings.HasSuffix(denied, ",rename") { // neither a backup nor a new file
					if err == nil || !strings.Contains(said, "it is not replaced, because it cannot be kept as "+dest) {
						t.Fatalf("%v, said %q", err, said)
					}
					holdsText(t, dest+"/src/a", old)
					continue
				}
				if err != nil {
					t.Fatalf("%v, said %q", err, said)
				}
				holdsText(t, dest+"/src/a", "new")
				holdsText(t, dest+"/src/a~", old)
				holdsText(t, dest+"/src/many/7~", "an old one")
				info, err := os.Stat(dest + "/src/a~")
				if err != nil || info.Mode() != 0o604 || info.Sys().(*syscall.Stat_t).Uid != 1234 || info.Sys().(*syscall.Stat_t).Gid != 1235 {
					t.Errorf("%v, %v", info, err)
				}
				if last, err = os.Readlink(dest + "/src/was link~"); err != nil || last != "precious" {
					t.Errorf("the link has become %q; %v", last, err)
				}
			}
			again, err := (&server{denied: denied}).start(t, "").place(t, Placing{Backup: "~"}, 0, dest, src)
			if last != "" && (err != nil || !strings.HasPrefix(again, "0 files copied")) {
				t.Errorf("%v, said %q", err, again)
			}
			if left := parts(t, dest); left != nil {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// A file that cannot be kept is not replaced, and one whose backup is the file itself, as after an
// interruption, is.
func TestBackupImpossible(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/new", "new", 0o644)
	write(t, dir+"/there/a", "the old one", 0o644)
	write(t, dir+"/there/a~/precious", "precious", 0o644)
	said, err := (&server{}).start(t, "").place(t, Placing{Backup: "~"}, 0, dir+"/there/a", dir+"/new")
	if err == nil || !strings.Contains(said, "it is not replaced, because it cannot be kept as "+dir+"/there/a~") {
		t.Errorf("%v, said %q", err, said)
	}
	holdsText(t, dir+"/there/a", "the old one")
	holdsText(t, dir+"/there/a~/precious", "precious")
	if err := os.Link(dir+"/there/a", dir+"/there/a.old"); err != nil {
		t.Fatal(err)
	}
	said, err = (&server{}).start(t, "").place(t, Placing{Backup: ".old"}, 0, dir+"/there/a", dir+"/new")
	if err != nil || parts(t, dir) != nil {
		t.Errorf("%v, said %q, left %q", err, said, parts(t, dir))
	}
	holdsText(t, dir+"/there/a", "new")
	holdsText(t, dir+"/there/a.old", "the old one")
}

// Wherever the connection ends, the file is there, whole, and once the new one is there, the old
// one is its backup.
func TestBackupCut(t *testing.T) {
	for _, denied := range []string{"", "hardlink"} {
		for cut, done := int64(50), false; !done; cut += 37 {
			dir := t.TempDir()
			write(t, dir+"/new", "new", 0o644)
			write(t, dir+"/there/a", "the old one", 0o644)
			s := (&server{denied: denied, dieAt: cut, noExec: true}).start(t, "")
			_, err := s.place(t, Placing{Backup: "~"}, 0, dir+"/there/a", dir+"/new")
			done = err == nil
			switch now, _ := os.ReadFile(dir + "/there/a"); string(now) {
			case "new":
				holdsText(t, dir+"/there/a~", "the old one")
			case "the old one":
			default:
				t.Errorf("after %d bytes the file holds %q", cut, now)
			}
		}
	}
}

// Owner and mode are there before the name is, in whatever way a file comes, and where it is equal
// already. A file that cannot get them does not come.
func TestOwnerAndMode(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	dir := t.TempDir()
	write(t, dir+"/src/a", "new", 0o644)
	write(t, dir+"/src/large", strings.Repeat("x", huge), 0o600)
	for i := range worthwhile {
		write(t, fmt.Sprint(dir, "/src/many/", i), "new", 0o755)
	}
	how := Placing{Owner: "daemon:nogroup"}
	same := func(dest string) {
		t.Helper()
		for _, name := range []string{"a", "large", "many/3"} {
			info, err := os.Stat(dest + "/src/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if a := info.Sys().(*syscall.Stat_t); info.Mode() != 0o240 || a.Uid != 1 || a.Gid != 65534 {
				t.Errorf("%s: %v of %d:%d", name, info.Mode(), a.Uid, a.Gid)
			}
		}
		if info, err := os.Stat(dest + "/src/many"); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode().Perm() != 0o755 {
			t.Errorf("the directory: %v, %v", info, err)
		}
	}
	for i, s := range []*server{{}, {noExec: true, denied: "fsetstat"}} {
		if how.Mkdir = false; s.noExec {
			how.Owner = "1:65534"
		}
		dest := fmt.Sprint(dir, "/there", i)
		if said, err := s.start(t, "").place(t, how, 0o240, dest+"/", dir+"/src"); err == nil || !strings.Contains(err.Error(), "no such directory") {
			t.Fatalf("%v, said %q", err, said)
		}
		how.Mkdir = true
		s = &server{noExec: s.noExec, denied: s.denied}
		if said, err := s.start(t, "").place(t, how, 0o240, dest+"/", dir+"/src"); err != nil {
			t.Fatalf("%v, said %q", err, said)
		}
		same(dest)
		os.Chown(dest+"/src/a", 2, 2)
		os.Chmod(dest+"/src/many/3", 0o777)
		s = &server{noExec: s.noExec}
		said, err := s.start(t, "").place(t, how, 0o240, dest, dir+"/src")
		if want := fmt.Sprintf("0 files copied; %d identical (2 with a new mode, owner or time)\n", worthwhile+2); err != nil || said != want {
			t.Errorf("%v, said %q", err, said)
		}
		same(dest)
	}
	dest := t.TempDir()
	os.Chmod(dest, 0o755)
	write(t, dest+"/a", "an old one", 0o644)
	said, err := (&server{denied: "setstat,fsetstat"}).start(t, "").place(t, how, 0, dest, dir+"/src/a")
	if err == nil || !strings.Contains(said, "its owner and mode cannot be set: ") || parts(t, dest) != nil {
		t.Errorf("%v, said %q, left %q", err, said, parts(t, dest))
	}
	holdsText(t, dest+"/a", "an old one")
	_, err = (&server{}).start(t, "").place(t, Placing{Owner: "nosuchuser"}, 0, "", dir+"/src/a")
	if err == nil || !strings.Contains(err.Error(), ".: the host has no user or group nosuchuser") || fault.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
}

// Root writes into no directory that somebody else could exchange, or lead elsewhere.
func TestRootIsNotLed(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	dir := t.TempDir() // in one with a sticky bit
	write(t, dir+"/src/sub/a", "new", 0o644)
	for _, name := range []string{"own/sub", "theirs/deep", "open", "tree/src/sub", "linked/src"} {
		if err := os.MkdirAll(dir+"/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"theirs", "tree/src/sub"} {
		if err := os.Chown(dir+"/"+name, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(dir+"/open", 0o1777)
	os.Symlink(dir+"/own/sub", dir+"/linked/src/sub")
	os.Symlink(dir+"/own/sub", dir+"/theirs/link")
	for _, tt := range []struct{ dest, fails, hint string }{
		{"own", "", ""},
		{"own/new/", "", ""},
		{"theirs/link", "", ""}, // root goes to the end of the link by its own name
		{"theirs/x", "theirs belongs to daemon, who could lead root to other files", "--sudo=daemon"},
		{"theirs/deep", "theirs belongs to daemon", "--sudo=daemon"},
		{"open", "others than root can write to ", "only root can change"},
		{"tree", "tree/src/sub belongs to daemon", "--sudo=daemon"},
		{"linked", "linked/src/sub is a link, which root does not follow", ""},
	} {
		for _, how := range []Placing{{AsRoot: true, Mkdir: true}, {Owner: "daemon", Mkdir: true}} {
			said, err := (&server{}).start(t, "").place(t, how, 0, dir+"/"+tt.dest, dir+"/src")
			if (err == nil) != (tt.fails == "") || err != nil && (!strings.Contains(err.Error(), tt.fails) || !strings.Contains(fault.HintOf(err), tt.hint)) {
				t.Errorf("%s: %v (%s), said %q", tt.dest, err, fault.HintOf(err), said)
			}
			if _, there := os.Stat(dir + "/" + tt.dest + "/src/sub/a"); (there == nil) != (tt.fails == "") {
				t.Errorf("%s: %v", tt.dest, there)
			}
		}
	}
	if _, err := os.Stat(dir + "/theirs/x"); err == nil {
		t.Error("a directory was made where root does not go")
	}
	holdsText(t, dir+"/own/sub/src/sub/a", "new")
}

// Missing directories are made by the umask, and only if that is asked for.
func TestMkdir(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a", "new", 0o600)
	write(t, dir+"/src/b", "new", 0o600)
	write(t, dir+"/file", "x", 0o600)
	for _, tt := range []struct{ dest, from, comes string }{
		{"1/2/a", "a", "1/2/a"}, {"3/4/", "a", "3/4/a"}, {"5/6", "src", "5/6/src/b"}, {"7/8", "src/", "7/8/b"}, {"1", "src", "1/src/b"}, {"file/x", "a", ""}, {"file/x/y/", "src", ""},
	} {
		said, err := (&server{}).start(t, "").place(t, Placing{Mkdir: true}, 0, dir+"/"+tt.dest, dir+"/"+tt.from)
		if tt.comes == "" {
			if err == nil || strings.Contains(said, "reason") {
				t.Errorf("%s: %v, said %q", tt.dest, err, said)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v, said %q", tt.dest, err, said)
		}
		holdsText(t, dir+"/"+tt.comes, "new")
	}
	said, err := (&server{}).start(t, "").place(t, Placing{}, 0, dir+"/none/a", dir+"/a")
	if err == nil || !strings.Contains(said, "let --mkdir do it") {
		t.Errorf("%v, said %q", err, said)
	}
	if info, err := os.Stat(dir + "/5/6"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}

// With --delete, backups of copied files stay, and no others.
func TestBackupIsNotDeleted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/src/a", "new", 0o644)
	write(t, dir+"/there/src/a", "the old one", 0o644)
	write(t, dir+"/there/src/gone~", "the old one", 0o644)
	u := Upload{Placing: Placing{Backup: "~"}, Deleting: deleting, Dest: dir + "/there"}
	said, err := mirror(t, (&server{}).start(t, ""), u, dir+"/src")
	if got := filesIn(t, dir+"/there"); err != nil || got != "src/a src/a~" {
		t.Errorf("%v, said %q, left %s", err, said, got)
	}
	holdsText(t, dir+"/there/src/a~", "the old one")
}
