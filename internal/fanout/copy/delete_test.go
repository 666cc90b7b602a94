package copy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
)

// mirrored is a source, and a directory of a host that has more.
func mirrored(t *testing.T) (src, dest string) {
	t.Helper()
	dir := t.TempDir()
	src, dest = dir+"/site", dir+"/there"
	write(t, src+"/keep", "new", 0o644)
	write(t, src+"/sub/keep", "new", 0o644)
	for _, name := range []string{"keep", "old", "sub/old", "gone/a", "gone/deep/b", "mixed/a", "mixed/log/x.log", "mixed/empty/c", "x.log"} {
		write(t, dest+"/site/"+name, name, 0o644)
	}
	write(t, dest+"/outside/precious", "precious", 0o644)
	if err := os.Symlink("../../outside", dest+"/site/sub/link"); err != nil {
		t.Fatal(err)
	}
	return src, dest
}

// mirror copies with what is to be deleted, and returns what is said and the error.
func mirror(t *testing.T, s interface {
	fleet.Channel
	heard() string
}, u Upload, names ...string) (string, error) {
	t.Helper()
	sources := NewSources(names)
	sources.Exclude = u.Exclude
	list, err := sources.Of(host.Host{})
	if err != nil {
		t.Fatal(err)
	}
	if u.Sources == nil {
		u.Sources = func(host.Host) ([]*Source, error) { return list, nil }
	}
	err = u.Dialogue(t.Context(), host.Host{Name: "h"}, s)
	return s.heard(), err
}

var deleting = Deleting{Delete: true, MaxDelete: 100}

// What the source lacks is deleted, links themselves; what is left out, and all around the
// directory, stays. A dry run says so before, and changes nothing.
func TestDelete(t *testing.T) {
	src, dest := mirrored(t)
	if err := syscall.Mkfifo(src+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dest+"/site/pipe", "of the name of what is not copied", 0o644)
	before := listing(t, dest)
	u := Upload{Options: Options{Exclude: without(t, "*.log"), Dry: true}, Deleting: deleting, Dest: dest}
	said, err := mirror(t, (&server{}).start(t, ""), u, src)
	var would []string
	for line := range strings.Lines(said) {
		if name, ok := strings.CutPrefix(line, "would delete "+dest+"/site/"); ok {
			would = append(would, strings.TrimSuffix(name, "\n"))
		}
	}
	if got, want := strings.Join(would, " "), "gone gone/a gone/deep gone/deep/b mixed/a mixed/empty mixed/empty/c old sub/link sub/old"; err != nil || got != want {
		t.Errorf("%v: %s, want %s\n%s", err, got, want, said)
	}
	if !strings.HasSuffix(said, "nothing is changed; without --dry-run: 2 files copied, 6 B; 10 deleted; 1 skipped\n") {
		t.Errorf("said %s", said)
	}
	if now := listing(t, dest); now != before {
		t.Errorf("a dry run changed:\n%s\nto\n%s", before, now)
	}
	u.Dry = false
	said, err = mirror(t, (&server{}).start(t, ""), u, src)
	if err != nil || said != "2 files copied, 6 B; 10 deleted; 1 skipped\n" {
		t.Errorf("%v: %s", err, said)
	}
	if got, want := filesIn(t, dest), "outside/precious site/keep site/mixed/log/x.log site/pipe site/sub/keep site/x.log"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
	said, err = mirror(t, (&server{}).start(t, ""), u, src)
	if err != nil || said != "0 files copied; 2 identical; 1 skipped\n" {
		t.Errorf("again: %v, %s", err, said)
	}
}

// More names than allowed: none is deleted, and the error says how to go on.
func TestDeleteTooMuch(t *testing.T) {
	for _, dry := range []bool{false, true} {
		src, dest := mirrored(t)
		u := Upload{Options: Options{Dry: dry}, Deleting: Deleting{Delete: true, MaxDelete: 13}, Dest: dest}
		said, err := mirror(t, (&server{}).start(t, ""), u, src)
		if err == nil || strings.Contains(err.Error(), "14 deleted") || !strings.Contains(said, "14 names to delete, and --max-delete allows 13") || !strings.Contains(said, "--max-delete 14") {
			t.Errorf("%v, %s", err, said)
		}
		if _, err := os.Stat(dest + "/site/gone/deep/b"); err != nil || dry != strings.Contains(said, "would delete "+dest+"/site/gone/deep/b\n") {
			t.Errorf("%v, %s", err, said)
		}
	}
}

// Nothing is deleted where something was not copied, nor what came here after the source was read.
func TestDeleteNeedsTheWholeSource(t *testing.T) {
	src, dest := mirrored(t)
	source, err := Scan(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := Upload{Deleting: deleting, Dest: dest, Sources: func(host.Host) ([]*Source, error) { return []*Source{source}, nil }}
	write(t, src+"/gone/a", "here by now", 0o644)
	if err := os.Rename(src+"/sub", src+"/vanished"); err != nil {
		t.Fatal(err)
	}
	said, err := mirror(t, (&server{}).start(t, ""), u, src)
	if err == nil || !strings.Contains(said, "nothing is deleted in it, because something failed") || !strings.Contains(filesIn(t, dest), "site/old") {
		t.Errorf("%v, %s", err, said)
	}
	if err := os.Rename(src+"/vanished", src+"/sub"); err != nil {
		t.Fatal(err)
	}
	if source, err = Scan(src, nil); err != nil {
		t.Fatal(err)
	}
	write(t, src+"/mixed/a", "here by now", 0o644)
	said, err = mirror(t, (&server{}).start(t, ""), u, src)
	if got := filesIn(t, dest+"/site"); err != nil || got != "gone/a keep mixed/a mixed/empty/c mixed/log/x.log sub/keep" {
		t.Errorf("%v, %s, left %s", err, said, got)
	}
}

// Nothing is deleted in a directory that is mounted on one of the host, whatever is mounted there,
// whether the host shows that or not, nor where the kernel is never asked.
func TestDeleteOnOneFileSystem(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	for name, hide := range map[string]string{"shown": "true", "hidden": "mount -t tmpfs none /proc"} {
		src, dest := mirrored(t)
		other := filepath.Dir(src) + "/other"
		write(t, other+"/precious", "precious", 0o644)
		write(t, other+"/deep/precious", "precious", 0o644)
		for _, to := range []string{"/site/sub/mount", "/site/gone/deep/mount", "/site/mixed", "/site/with \\ space/mount", "/site/ram"} {
			if err := os.MkdirAll(dest+to, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write(t, src+"/mixed/keep", "new", 0o644)
		setup := "cd " + dest + "/site && mount --bind ../../other sub/mount && mount --bind ../../other gone/deep/mount && mount --bind ../../other mixed && " +
			`mount --bind ../../other 'with \ space/mount' && mount -t tmpfs none ram && echo x >ram/a && cd / && ` + hide
		for _, dry := range []bool{true, false} {
			u := Upload{Deleting: deleting, Options: Options{Dry: dry}, Dest: dest}
			s := (&server{}).start(t, setup)
			said, err := mirror(t, s, u, src)
			want := map[bool]string{true: "is a mount point: nothing is deleted in it", false: "may be on another file system: nothing is deleted in it"}[name == "shown"]
			if err != nil || (!dry || name == "shown") && strings.Count(said, want) != 5 {
				t.Errorf("%s, %v: %v\n%s", name, dry, err, said)
			}
		}
		if got := filesIn(t, other); got != "deep/precious keep precious" {
			t.Errorf("%s: left on the other file system: %s", name, got)
		}
		if got := filesIn(t, dest+"/site"); got != "keep mixed/a mixed/empty/c mixed/log/x.log sub/keep" {
			t.Errorf("%s: left: %s", name, got)
		}
		if left := append(parts(t, dest), parts(t, other)...); left != nil {
			t.Errorf("%s: left behind: %q", name, left)
		}
	}
}

// Directories in which nothing is deleted: links, home directories and all above them.
func TestDeleteRefuses(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	src, dest := mirrored(t)
	write(t, src+"/mixed/keep", "new", 0o644)
	os.Symlink("site", dest+"/link")
	home := filepath.Dir(src)
	for _, tt := range []struct{ slash, dest, says string }{
		{"/", dest + "/link", "does not delete in a link"},
		{"/", ".", "is a home directory"},
		{"/", "/", "is a home directory or holds one"},
		{"/", "..", "is a home directory or holds one"},
		{"/", filepath.Dir(home), "is a home directory or holds one"},
		{"/", "/home/somebody", "is a home directory"},
		{"/", "/root", "is a home directory"},
		{"/keep", dest + "/site", "needs a directory"},
	} {
		before := listing(t, home)
		s := (&server{}).start(t, "mount -t tmpfs none /home && mkdir /home/somebody && cd "+home)
		said, err := mirror(t, s, Upload{Deleting: deleting, Dest: tt.dest}, src+tt.slash)
		if err == nil || !strings.Contains(err.Error(), tt.says) || listing(t, home) != before {
			t.Errorf("%s: %v, %s", tt.dest, err, said)
		}
	}
	os.Remove(dest + "/site/sub/link")
	os.RemoveAll(dest + "/site/mixed")
	os.Symlink("../outside", dest+"/site/mixed")
	said, err := mirror(t, (&server{}).start(t, ""), Upload{Deleting: deleting, Dest: dest}, src)
	if err != nil || !strings.Contains(said, dest+"/site/mixed: is a link, or the host does not say: nothing is deleted in it") {
		t.Errorf("%v, %s", err, said)
	}
	if got := filesIn(t, dest+"/outside"); got != "keep precious" {
		t.Errorf("behind a link there is %s", got)
	}
}

// otherNames is a host that keeps names in other letters.
type otherNames struct{ *server }

func (o otherNames) Read(p []byte) (int, error) {
	n, err := o.server.Read(p)
	copy(p, bytes.ReplaceAll(p[:n], []byte("README"), []byte("readme")))
	return n, err
}

// A host that writes names otherwise would lose what has just been copied.
func TestDeleteOtherNames(t *testing.T) {
	src, dest := mirrored(t)
	write(t, src+"/README", "new", 0o644)
	said, err := mirror(t, otherNames{(&server{}).start(t, "")}, Upload{Deleting: deleting, Dest: dest}, src)
	if got := filesIn(t, dest+"/site"); err == nil || !strings.Contains(said, "under other names") || !strings.Contains(got, "README") || !strings.Contains(got, "old") {
		t.Errorf("%v, %s, left %s", err, said, got)
	}
}

// What cannot be deleted is a failure, and named.
func TestDeleteRefused(t *testing.T) {
	src, dest := mirrored(t)
	said, err := mirror(t, (&server{denied: "rmdir"}).start(t, ""), Upload{Deleting: deleting, Dest: dest}, src)
	if err == nil || !strings.Contains(said, dest+"/site/gone/deep: is not deleted: Permission denied") || !strings.Contains(err.Error(), "deleted; ") {
		t.Errorf("%v, %s", err, said)
	}
	src, dest = mirrored(t)
	said, err = mirror(t, (&server{denied: "opendir"}).start(t, ""), Upload{Deleting: deleting, Dest: dest}, src)
	if err == nil || !strings.Contains(filesIn(t, dest), "site/old") {
		t.Errorf("%v, %s", err, said)
	}
}

// A command runs where something has changed, and its end is the host's; elsewhere it does not.
func TestThen(t *testing.T) {
	src, dest := mirrored(t)
	command := "echo out; echo err >&2; echo ran >>" + dest + "/ran; cat; exit 3"
	u := Upload{Deleting: deleting, Dest: dest, Then: command, Options: Options{Dry: true}}
	said, err := mirror(t, (&server{}).start(t, ""), u, src)
	if err != nil || !strings.HasSuffix(said, "; then it would run: "+command+"\n") {
		t.Errorf("%v, %s", err, said)
	}
	if u.Dry = false; !t.Failed() {
		said, err = mirror(t, (&server{}).start(t, ""), u, src)
	}
	if ended, ok := errors.AsType[*fleet.CommandError](err); !ok || ended.Exit != 3 || said != "2 files copied, 6 B; 14 deleted\nout\nerr\n" {
		t.Errorf("%v, %q", err, said)
	}
	said, err = mirror(t, (&server{}).start(t, ""), u, src)
	if ran, _ := os.ReadFile(dest + "/ran"); err != nil || string(ran) != "ran\n" || said != "0 files copied; 2 identical; nothing has changed, and the command of --then is not run\n" {
		t.Errorf("%v, %q, ran %q", err, said, ran)
	}
	for _, change := range []string{"chmod 600 keep", "chmod 700 sub", "mkdir new", "rm -r new", "ln -s keep link"} {
		if out, err := exec.Command("sh", "-c", "cd "+src+" && "+change).CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", change, out)
		}
		if _, err = mirror(t, (&server{}).start(t, ""), u, src); err == nil {
			t.Errorf("%s: the command did not run", change)
		}
	}
	write(t, src+"/keep", "newer", 0o644)
	said, err = mirror(t, (&server{noExec: true}).start(t, ""), u, src)
	if data, _ := os.ReadFile(dest + "/site/keep"); err == nil || !strings.Contains(err.Error(), "nothing is copied, because --then cannot run") || string(data) != "new" {
		t.Errorf("%v, %s, holds %q", err, said, data)
	}
}

// A dry run shows how small texts differ, and nothing of other files; what a host says is shown
// as it is without being obeyed.
// Root by sudo deletes only in directories that nobody else can change.
func TestRootDeletesWhereItIsAlone(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	dir := t.TempDir()
	write(t, dir+"/src/a", "new", 0o644)
	for _, name := range []string{"old", "gone/x", "theirs/x", "open/x", "gone/theirs/x"} {
		write(t, dir+"/there/"+name, "old", 0o644)
	}
	os.Chmod(dir+"/there/open", 0o777)
	for _, name := range []string{"theirs", "gone/theirs"} {
		if err := os.Chown(dir+"/there/"+name, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	u := Upload{Placing: Placing{AsRoot: true}, Deleting: deleting, Dest: dir + "/there"}
	said, err := mirror(t, (&server{}).start(t, ""), u, dir+"/src/")
	if got := filesIn(t, dir+"/there"); err != nil || got != "a gone/theirs/x open/x theirs/x" || strings.Count(said, "others than root can change") != 3 {
		t.Errorf("%v, said %q, left %s", err, said, got)
	}
}

func TestDryRun(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/src/text", "one\ntwo\nthree\n", 0o644)
	write(t, dir+"/src/binary", "\x00\x01", 0o644)
	write(t, dir+"/src/large", strings.Repeat("line\n", 20_000), 0o644)
	write(t, dir+"/src/new", "new", 0o644)
	write(t, dir+"/src/mode", "same", 0o755)
	write(t, dir+"/there/src/text", "one\n\x1b[31m2\nthree\n", 0o644)
	write(t, dir+"/there/src/binary", "text\n", 0o644)
	write(t, dir+"/there/src/large", "text\n", 0o644)
	exec.Command("cp", "-p", dir+"/src/mode", dir+"/there/src/").Run()
	os.Chmod(dir+"/there/src/mode", 0o644)
	os.Symlink("text", dir+"/src/link")
	const changes = "would replace %[1]sbinary, 2 B\nwould replace %[1]slarge, 97.7 KiB\nwould link %[1]slink -> text\nwould set mode or time of %[1]smode\nwould create %[1]snew, 3 B\n" +
		"would replace %[1]stext, 14 B\n  @@ -1,3 +1,3 @@\n   one\n  -\\x1b[31m2\n  +two\n   three\n" +
		"nothing is changed; without --dry-run: 5 files copied, 97.7 KiB; 1 identical (1 with a new mode, owner or time)\n"
	before := listing(t, dir)
	said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{Dry: true}, dir+"/there", dir+"/src")
	if want := fmt.Sprintf(changes, dir+"/there/src/"); err != nil || said != want {
		t.Errorf("%v, said\n%s\nwant\n%s", err, said, want)
	}
	got := t.TempDir()
	for range 2 {
		s := (&server{}).start(t, "")
		if err := download(t, s, Options{Dry: true}, 0, got, dir+"/src"); err != nil || !strings.Contains(s.heard(), "would ") {
			t.Errorf("%v, said %s", err, s.heard())
		}
		if entries, _ := os.ReadDir(got); len(entries) > 0 && entries[0].Name() != "h" {
			t.Errorf("a dry run made %v", entries)
		}
		if err := exec.Command("cp", "-a", dir+"/there", got+"/h").Run(); err != nil {
			t.Fatal(err)
		}
	}
	beforeHere := listing(t, got)
	s := (&server{}).start(t, "")
	if err := download(t, s, Options{Dry: true}, 0, got, dir+"/src"); err != nil || s.heard() != fmt.Sprintf(changes, "src/") {
		t.Errorf("fetch: %v, said\n%s", err, s.heard())
	}
	if listing(t, dir) != before || listing(t, got) != beforeHere {
		t.Error("something has changed")
	}
	if _, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{Dry: true}, dir+"/none/new", dir+"/src"); !errors.Is(err, errNoDirectory) {
		t.Error(err)
	}
	if said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{Dry: true}, dir+"/new", dir+"/src"); err != nil || !strings.Contains(said, "would make directory "+dir+"/new/src\n") || listing(t, dir) != before {
		t.Errorf("%v, %s", err, said)
	}
}
