package copy

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
)

// many makes a directory with files enough for packs, in directories of directories.
func many(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "src")
	for i := range 40 {
		write(t, fmt.Sprintf("%s/%d", dir, i), strings.Repeat("x", 50*i), 0o640)
		write(t, fmt.Sprintf("%s/a/%d", dir, i), fmt.Sprint(i), 0o604)
		write(t, fmt.Sprintf("%s/a/b c/%d", dir, i), strings.Repeat("y", 1000), 0o755)
	}
	write(t, dir+"/a/-p 'quoted' $x\xff", "x", 0o600)
	write(t, dir+"/a/two\nlines", "x", 0o600)
	write(t, dir+`/a/back\slash`, "x", 0o600)
	write(t, dir+"/a/unreadable", "x", 0o200)
	write(t, dir+"/a/medium", strings.Repeat("m", 300_000), 0o600)
	write(t, dir+"/a/big", strings.Repeat("b", 2<<20), 0o600)
	write(t, dir+"/"+strings.Repeat("l", 90)+"/"+strings.Repeat("m", 100), "long", 0o600)
	write(t, dir+"/"+strings.Repeat("l", 160)+"/"+strings.Repeat("m", 90), "too long", 0o600)
	os.Mkdir(dir+"/empty", 0o711)
	if err := os.Symlink("a", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir+"/a/b c", 0o555)
	then := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"/a/b c", "/a", "/empty", "/" + strings.Repeat("l", 90), "/" + strings.Repeat("l", 160), ""} {
		os.Chtimes(dir+name, then, then)
	}
	return dir
}

// manyFiles is how many files and links that directory has.
const manyFiles = 129

// program puts a program in the way of a host's own.
func program(t *testing.T, name, text string) (before string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir+"/"+name, "#!/bin/sh\n"+text+"\n", 0o755)
	return "PATH=" + dir + ":$PATH; "
}

// arrivedAll makes sure that all of src is at dest, and nothing else.
func arrivedAll(t *testing.T, src, dest string) {
	t.Helper()
	if d := cmp.Diff(strings.SplitAfter(listing(t, src), "\n"), strings.SplitAfter(listing(t, dest), "\n")); d != "" {
		t.Errorf("arrived (-want +got):\n%s", d)
	}
	if left := parts(t, filepath.Dir(dest)); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// A pack is unpacked by every tar, and where there is none, or one that does something else, the
// files arrive all the same.
func TestPack(t *testing.T) {
	src := many(t)
	for _, tt := range []struct {
		name, before string
		packs        bool
	}{
		{"GNU", "", true},
		{"busybox", program(t, "tar", `exec busybox tar "$@"`), true},
		{"BSD", program(t, "tar", `exec bsdtar "$@"`), true},
		{"variables", "export TAR_OPTIONS=--exclude=3 CDPATH=/tmp; ", true},
		{"none", program(t, "tar", `echo "tar: not found" >&2; exit 127`), false},
		{"reads nothing", program(t, "tar", `exit 0`), false},
		{"reads all", program(t, "tar", `cat >/dev/null`), false},
		{"leaves one out", program(t, "tar", `/bin/tar "$@" && rm src/a/3`), false},
		{"damages one", program(t, "tar", `/bin/tar "$@" && printf z >src/a/3`), false},
		{"says it failed", program(t, "tar", `/bin/tar "$@"; exit 2`), false},
		{"no cksum", program(t, "cksum", `exit 127`), false},
		{"another directory", "cd /; ", true},
		{"shell that answers", "echo hello; ", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dest := t.TempDir()
			s := (&server{before: tt.before}).start(t, "")
			said, err := upload(t, t.Context(), s, Options{}, dest, src)
			if err != nil || !strings.HasPrefix(said, fmt.Sprint(manyFiles, " files copied")) {
				t.Fatalf("%v: %s", err, said)
			}
			arrivedAll(t, src, dest+"/src")
			if n := s.sent.Load(); (n < 2_300_000) != tt.packs {
				t.Errorf("%d bytes by SFTP", n)
			}
		})
	}
}

// What is there already is neither sent nor touched, but for what differs.
func TestPackIntoDirectory(t *testing.T) {
	src, dest := many(t), t.TempDir()
	first := (&server{}).start(t, "")
	if said, err := upload(t, t.Context(), first, Options{}, dest, src); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for i := range 40 {
		write(t, fmt.Sprintf("%s/%d", src, i), "new", 0o600)
		write(t, fmt.Sprintf("%s/fresh/sub/%d", src, i), "new", 0o600)
	}
	os.Remove(dest + "/src/7")
	os.Mkdir(dest+"/src/8", 0o755)
	os.Remove(dest + "/src/8")
	if err := errors.Join(os.RemoveAll(dest+"/src/9"), os.Mkdir(dest+"/src/9", 0o755), os.RemoveAll(dest+"/src/10"), os.Symlink("/etc/passwd", dest+"/src/10")); err != nil {
		t.Fatal(err)
	}
	said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dest, src)
	if err == nil || !strings.Contains(said, "/src/9: is a directory on the host") || !strings.Contains(said, fmt.Sprintf("79 files copied, 237 B; %d identical; 1 failed", manyFiles-40)) {
		t.Errorf("%v, said %q", err, said)
	}
	os.RemoveAll(dest + "/src/9")
	os.Remove(src + "/9")
	then := time.Now().Add(-3 * time.Hour)
	os.Chtimes(src, then, then)
	os.Chtimes(dest+"/src", then, then)
	arrivedAll(t, src, dest+"/src")
}

// Files in a directory get its group and its mode bits that are inherited.
func TestPackInheritsGroup(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	src, dest := many(t), t.TempDir()
	if err := errors.Join(os.MkdirAll(dest+"/src/a", 0o755), os.Chown(dest+"/src/a", 0, 1234), os.Chmod(dest+"/src/a", 0o755|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	if said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dest, src); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	out, err := exec.Command("stat", "-c", "%g", dest+"/src/1", dest+"/src/a/1", dest+"/src/a/b c/1").Output()
	if err != nil || string(out) != "0\n1234\n1234\n" {
		t.Errorf("groups %q, %v", out, err)
	}
}

// A host that is lost in the middle has nothing half done under a name; the next copy takes away
// what is left of the first.
func TestPackHostDies(t *testing.T) {
	src, dest := many(t), t.TempDir()
	write(t, dest+"/src/5", "old", 0o600)
	s := (&server{execDiesAt: 100_000}).start(t, "")
	if said, err := upload(t, t.Context(), s, Options{}, dest, src); err == nil {
		t.Errorf("no error, said %q", said)
	}
	if got := contents(t, dest+"/src"); strings.Count(got, "\n") != strings.Count(got, ".sshpace-")+1 || parts(t, dest) == nil {
		t.Errorf("there is:\n%s", got)
	}
	if data, _ := os.ReadFile(dest + "/src/5"); string(data) != "old" {
		t.Errorf("the old file has %d bytes", len(data))
	}
	said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dest, src)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	then := time.Now().Add(-2 * time.Hour)
	os.Chmod(dest+"/src", 0o755)
	os.Chtimes(dest+"/src", then, then)
	os.Chtimes(src, then, then)
	arrivedAll(t, src, dest+"/src")
}

// A directory that a killed copy has left goes with the next one, though that has little to do.
func TestDirectoryOfAKilledCopyGoes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/src/file", "new", 0o644)
	stage := newPart("h", dir+"/dest/files").fresh()
	write(t, stage+"/many/1", "unpacked", 0o600)
	write(t, stage+"/many/deep/2", "unpacked", 0o600)
	if said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dir+"/dest", dir+"/src/"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if left := parts(t, dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// A file that becomes shorter, or is gone, is said; the others arrive.
func TestPackChangesHere(t *testing.T) {
	for _, noVerify := range []bool{false, true} {
		src, dest := many(t), t.TempDir()
		source, err := Scan(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(t, src+"/a/medium", "shorter", 0o600)
		os.Remove(src + "/30")
		s := (&server{}).start(t, "")
		u := Upload{Options: Options{NoVerify: noVerify}, Dest: dest, Sources: func(host.Host) ([]*Source, error) { return []*Source{source}, nil }}
		err = u.Dialogue(t.Context(), host.Host{Name: "h"}, s)
		said := s.said.String()
		if err == nil || !strings.Contains(said, "/a/medium: changed here") || !strings.Contains(said, "/src/30: ") ||
			!strings.Contains(err.Error(), fmt.Sprintf("%d files copied", manyFiles-2)) || !strings.Contains(err.Error(), "; 2 failed") {
			t.Errorf("%v, said %q", err, said)
		}
		for _, name := range []string{"/src/30", "/src/a/medium"} {
			if _, err := os.Lstat(dest + name); err == nil {
				t.Errorf("%s is there", name)
			}
		}
		if left := parts(t, dest); left != nil {
			t.Errorf("left behind: %q", left)
		}
	}
}

// Hosts that share a disk are not in each other's way.
func TestPackToOneDisk(t *testing.T) {
	src := many(t)
	dest := fromMany(t, src)
	if d := cmp.Diff(strings.SplitAfter(contents(t, src), "\n"), strings.SplitAfter(contents(t, dest+"/src"), "\n")); d != "" {
		t.Errorf("arrived (-want +got):\n%s", d)
	}
}

// The archive has each file, and each directory once.
func TestArchive(t *testing.T) {
	source, err := Scan(many(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var files []*placed
	want := map[string]int64{}
	for _, it := range source.items {
		to := &placed{item: it, name: "top/src/" + it.rel}
		if it.kind == 0 && isPackable("top", to) {
			files = append(files, to)
			want["src/"+it.rel] = it.size
		}
	}
	var data bytes.Buffer
	if err := (&side{ctx: t.Context()}).archive(&data, "top", files, nil); err != nil || len(want) < manyFiles-8 {
		t.Fatalf("%d files, %v", len(want), err)
	}
	directories := 0
	for r := tar.NewReader(&data); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			directories++
			continue
		}
		if size, ok := want[h.Name]; !ok || size != h.Size {
			t.Errorf("%q has %d bytes, want %d", h.Name, h.Size, size)
		}
		delete(want, h.Name)
	}
	if len(want) > 0 || directories != 5 {
		t.Errorf("missing: %v; %d directories", want, directories)
	}
}
