package copy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/unit"
	"sshpace/internal/base/waittest"
)

// The checksum is that of cksum(1).
func TestCksum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2026))
	for _, n := range []int{0, 1, 7, 8, 9, 255, 256, 4095, 4096, 4097, 70_001} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		cmd := exec.Command("cksum")
		cmd.Stdin = bytes.NewReader(data)
		want, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		sum, size, _ := cksumOf(bytes.NewReader(data))
		if got := fmt.Sprintf("%d %d\n", sum, size); got != string(want) {
			t.Errorf("%d bytes: %q, cksum says %q", n, got, want)
		}
	}
}

// A tree arrives as it is, and a second copy does nothing.
func TestUploadTree(t *testing.T) {
	src := tree(t)
	for _, noExec := range []bool{false, true} {
		dest := t.TempDir()
		said, err := upload(t, t.Context(), (&server{noExec: noExec}).start(t, ""), Options{}, dest, src)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if got, want := listing(t, dest+"/src"), listing(t, src); got != want {
			t.Errorf("arrived:\n%s\nwant:\n%s", got, want)
		}
		if left := parts(t, dest); left != nil {
			t.Errorf("left behind: %q", left)
		}
		said, err = upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dest, src)
		if err != nil || said != "0 files copied; 10 identical\n" {
			t.Errorf("second copy: %q, %v", said, err)
		}
	}
}

// DEST is a name, or a directory.
func TestUploadDestination(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a", "a", 0o644)
	write(t, dir+"/b", "b", 0o644)
	os.Mkdir(dir+"/directory", 0o755)
	for _, test := range []struct {
		dest  string
		names []string
		want  string // a file that is there then, or the error
	}{
		{"/c", []string{"/a"}, "/c"},
		{"/directory", []string{"/a"}, "/directory/a"},
		{"/directory/", []string{"/a", "/b"}, "/directory/b"},
		{"/none/", []string{"/a"}, "no such directory"},
		{"/none/x", []string{"/a"}, "No such file"},
		{"/a", []string{"/a", "/b"}, "is not a directory"},
		{"/of-%h", []string{"/a"}, "/of-h"},
		{"/a", []string{"/directory"}, "is not a directory"},
		{"/none/new", []string{"/directory"}, "no such directory"},
		{"/new", []string{"/directory"}, "/new/directory/a"}, // a directory keeps its name, the first time
		{"/new", []string{"/directory"}, "/new/directory/a"}, // and the second
		{"/inside", []string{"/directory/"}, "/inside/a"},
		{"/inside", []string{"/directory/"}, "/inside/a"},
	} {
		var names []string
		for _, n := range test.names {
			names = append(names, dir+n)
		}
		said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dir+test.dest, names...)
		if strings.HasPrefix(test.want, "/") {
			if _, missing := os.Stat(dir + test.want); err != nil || missing != nil {
				t.Errorf("%s: %v, %v, %s", test.dest, err, missing, said)
			}
		} else if err == nil || !strings.Contains(said, test.want) {
			t.Errorf("%s: %v, %s, want %q", test.dest, err, said, test.want)
		}
	}
}

// A host that dies in the middle keeps its old file; the next copy goes on.
func TestUploadHostDies(t *testing.T) {
	dir := t.TempDir()
	data := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB
	write(t, dir+"/new", data, 0o644)
	write(t, dir+"/there/file", "old", 0o644)
	said, err := upload(t, t.Context(), (&server{dieAt: 2 << 20}).start(t, ""), Options{}, dir+"/there/file", dir+"/new")
	if err == nil || strings.Contains(said, "copied") {
		t.Errorf("error %v, said %q", err, said)
	}
	if now, _ := os.ReadFile(dir + "/there/file"); string(now) != "old" {
		t.Errorf("the old file has %d bytes", len(now))
	}
	left := parts(t, dir)
	if len(left) != 1 {
		t.Fatalf("left: %q", left)
	}
	s := (&server{}).start(t, "")
	said, err = upload(t, t.Context(), s, Options{}, dir+"/there/file", dir+"/new")
	if now, _ := os.ReadFile(dir + "/there/file"); err != nil || string(now) != data {
		t.Errorf("%v, %d bytes, %s", err, len(now), said)
	}
	if s.sent.Load() > 3<<20 {
		t.Errorf("%d bytes were sent again", s.sent.Load())
	}
}

// A part that is not what it should be is found out and sent anew.
func TestUploadDamagedPart(t *testing.T) {
	for _, noExec := range []bool{false, true} {
		dir := t.TempDir()
		data := strings.Repeat("0123456789abcdef", 1<<17)
		write(t, dir+"/new", data, 0o644)
		write(t, uploadPart(t, dir+"/there/file", dir+"/new"), strings.Repeat("x", 1<<20), 0o600)
		said, err := upload(t, t.Context(), (&server{noExec: noExec}).start(t, ""), Options{}, dir+"/there/file", dir+"/new")
		if now, _ := os.ReadFile(dir + "/there/file"); err != nil || string(now) != data {
			t.Errorf("%v, %d bytes, %s", err, len(now), said)
		}
	}
}

// A part that somebody else owns, or that lies in somebody else's directory, is none to continue
// with: its owner could change what is put into place.
func TestUploadPartOfAnother(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	for name, plant := range map[string]func(dir, part string) error{
		"part":      func(_, part string) error { return os.Chown(part, 1000, 1000) },
		"directory": func(dir, _ string) error { return os.Chown(dir, 1000, 1000) },
	} {
		dir := t.TempDir()
		data := strings.Repeat("0123456789abcdef", 1<<18)
		write(t, dir+"/new", data, 0o644)
		part := uploadPart(t, dir+"/there/file", dir+"/new")
		write(t, part, data[:2<<20], 0o600)
		if err := plant(dir+"/there", part); err != nil {
			t.Fatal(err)
		}
		s := (&server{}).start(t, "")
		said, err := upload(t, t.Context(), s, Options{}, dir+"/there/file", dir+"/new")
		if now, _ := os.ReadFile(dir + "/there/file"); err != nil || string(now) != data || s.sent.Load() < int64(len(data)) {
			t.Errorf("%s: %v, %d bytes, %d sent, %s", name, err, len(now), s.sent.Load(), said)
		}
		if info, err := os.Stat(dir + "/there/file"); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// In a directory that others can write to, a part is nobody's to continue with.
func TestUploadForeignPart(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(dir+"/tmp", 0o777)
	os.Chmod(dir+"/tmp", 0o777)
	write(t, dir+"/secret", "not to be written to", 0o600)
	data := strings.Repeat("0123456789abcdef", 1<<17)
	write(t, dir+"/new", data, 0o644)
	part := uploadPart(t, dir+"/tmp/file", dir+"/new")
	for _, plant := range []func() error{
		func() error { return os.Symlink(dir+"/secret", part) },
		func() error { return os.Link(dir+"/secret", part) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		os.Remove(dir + "/tmp/file")
		said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dir+"/tmp/file", dir+"/new")
		if now, _ := os.ReadFile(dir + "/tmp/file"); err != nil || string(now) != data {
			t.Errorf("%v, %d bytes, %s", err, len(now), said)
		}
		if now, _ := os.ReadFile(dir + "/secret"); string(now) != "not to be written to" {
			t.Errorf("the other file is now %d bytes", len(now))
		}
	}
}

// A full disk and a read-only one are said; what was there stays.
func TestUploadNoRoom(t *testing.T) {
	for setup, want := range map[string]string{
		"mount -t tmpfs -o size=1m none there && echo old >there/file":                   "no space left on the host",
		"mount -t tmpfs none there && echo old >there/file && mount -o remount,ro there": "refuses without a reason",
	} {
		dir := t.TempDir()
		os.Mkdir(dir+"/there", 0o755)
		write(t, dir+"/new", strings.Repeat("0123456789abcdef", 1<<18), 0o644)
		s := (&server{}).start(t, "cd "+dir+" && "+setup)
		said, err := upload(t, t.Context(), s, Options{}, dir+"/there/file", dir+"/new")
		if err == nil || !strings.Contains(said, want) {
			t.Errorf("%s: %v, %q, want %q", setup, err, said, want)
		}
	}
}

// TestUploadManyFail: of many files that find no room only some are named, and only what has its
// place is counted.
func TestUploadManyFail(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(dir+"/there", 0o755)
	const files, size = 100, 64 << 10
	for i := range files {
		write(t, fmt.Sprintf("%s/new/%d", dir, i), strings.Repeat("x", size), 0o644)
	}
	s := (&server{}).start(t, "cd "+dir+" && mount -t tmpfs -o size=1m none there")
	said, err := upload(t, t.Context(), s, Options{}, dir+"/there", dir+"/new")
	var copied, failed int
	if _, scan := fmt.Sscanf(said[strings.LastIndex(said[:len(said)-1], "\n")+1:], "%d files copied", &copied); err == nil || scan != nil || copied == 0 {
		t.Fatalf("%v, %v, %q", err, scan, said)
	}
	failed = files - copied
	want := fmt.Sprintf("... and %d files more failed\n%d files copied, %s; %d failed; %d files verified by reading them back: the host gives no session for its cksum\n", failed-maxSaid, copied, unit.Bytes(int64(copied)*size), failed, copied)
	if !strings.HasSuffix(said, want) || strings.Count(said, "no space left on the host") != maxSaid {
		t.Errorf("said %q, want %d names and %q", said, maxSaid, want)
	}
}

// Ctrl-C leaves the old file, and what has come of a large one.
func TestUploadInterrupted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/new", strings.Repeat("0123456789abcdef", 1<<18), 0o644)
	write(t, dir+"/there/file", "old", 0o644)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(stop) })
	start := time.Now()
	_, err := upload(t, ctx, (&server{}).start(t, ""), Options{Limit: NewLimiter(1 << 20)}, dir+"/there/file", dir+"/new")
	if !errors.Is(err, stop) || time.Since(start) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if now, _ := os.ReadFile(dir + "/there/file"); string(now) != "old" {
		t.Errorf("the old file has %d bytes", len(now))
	}
}

// With --checksum, size and time do not count.
func TestUploadCompare(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/new", "abc", 0o644)
	write(t, dir+"/same", "abc", 0o600)
	write(t, dir+"/other", "xyz", 0o644)
	os.Chtimes(dir+"/same", time.Unix(1, 0), time.Unix(1, 0))
	info, _ := os.Stat(dir + "/new")
	os.Chtimes(dir+"/other", info.ModTime(), info.ModTime())
	for name, want := range map[string]string{"/same": "0 files copied; 1 identical (1 with a new mode, owner or time)\n", "/other": "1 file copied, 3 B\n"} {
		said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{Compare: true}, dir+name, dir+"/new")
		now, _ := os.Stat(dir + name)
		if err != nil || said != want || now.Mode() != 0o644 || now.ModTime().Unix() != info.ModTime().Unix() {
			t.Errorf("%s: %v, %q, %v", name, err, said, now)
		}
	}
}

// SFTP has seconds from 1970 to 2106: other times are the nearest of them.
func TestUploadOldTimes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/src/old", "old", 0o644)
	write(t, dir+"/src/new", "new", 0o644)
	os.Chtimes(dir+"/src/old", time.Unix(-1000, 0), time.Unix(-1000, 0))
	os.Chtimes(dir+"/src/new", time.Unix(1<<33, 0), time.Unix(1<<33, 0))
	for _, want := range []string{"2 files copied, 6 B\n", "0 files copied; 2 identical\n"} {
		said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dir+"/dest", dir+"/src/")
		if err != nil || said != want {
			t.Errorf("%v, said %q, want %q", err, said, want)
		}
	}
	for name, want := range map[string]int64{"old": 0, "new": 1<<32 - 1} {
		if info, err := os.Stat(dir + "/dest/" + name); err != nil || info.ModTime().Unix() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestScanLeavesOutWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := exec.Command("mkfifo", filepath.Join(dir, "pipe")).Run(); err != nil {
		t.Fatal(err)
	}
	s, err := Scan(dir, nil)
	if err != nil || len(s.Left) != 1 {
		t.Errorf("%v, %+v", err, s)
	}
}

// fromMany copies src by eight hosts at once to one directory, which it returns.
func fromMany(t *testing.T, src string) (dest string) {
	t.Helper()
	dest = t.TempDir()
	source, err := Scan(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := Upload{Dest: dest, Sources: func(host.Host) ([]*Source, error) { return []*Source{source}, nil }}
	var all sync.WaitGroup
	for i := range 8 {
		s := (&server{}).start(t, "")
		all.Go(func() {
			if err := u.Dialogue(t.Context(), host.Host{Name: fmt.Sprint("h", i)}, s); err != nil {
				t.Errorf("%v: %s", err, &s.said)
			}
		})
	}
	all.Wait()
	if left := parts(t, dest); left != nil {
		t.Errorf("left behind: %q", left)
	}
	return dest
}

// Hosts may share a disk, as clusters do: they do not disturb each other.
func TestUploadToOneDisk(t *testing.T) {
	src := tree(t)
	dest := fromMany(t, src)
	if got, want := contents(t, dest+"/src"), contents(t, src); got != want { // the last of them changes times of directories
		t.Errorf("arrived:\n%s\nwant:\n%s", got, want)
	}
}

// Links in a circle are an error that names them; inside a directory they are copied as they are.
func TestScanLinksInACircle(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Symlink("b", dir+"/a"), os.Symlink("a", dir+"/b")); err != nil {
		t.Fatal(err)
	}
	if _, err := Scan(dir+"/a", nil); !errors.Is(err, syscall.ELOOP) || !strings.Contains(err.Error(), dir+"/a") {
		t.Errorf("error %v, want one that names %s/a", err, dir)
	}
	if s, err := Scan(dir, nil); err != nil || len(s.items) != 3 {
		t.Errorf("%d items, %v", len(s.items), err)
	}
}

// As scp does it, a file is written where it stands: its own mode stays, a new one has that of the
// source as far as the umask lets, and -p has the time, too.
func TestUploadAsScp(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/old", "new text", 0o640)
	write(t, dir+"/new", "more", 0o640)
	then := time.Unix(1_600_000_000, 0)
	for _, name := range []string{"/old", "/new"} {
		if err := os.Chtimes(dir+name, then, then); err != nil {
			t.Fatal(err)
		}
	}
	for _, preserve := range []bool{false, true} {
		dest := t.TempDir()
		write(t, dest+"/old", "an old text", 0o600)
		scp := &Scp{Preserve: preserve}
		var sources []*Source
		for _, name := range []string{"/old", "/new"} {
			source, err := Scan(dir+name, scp)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, source)
		}
		up := Upload{Options: Options{NoVerify: true, Scp: scp}, Dest: dest, Sources: func(host.Host) ([]*Source, error) { return sources, nil }}
		s := (&server{}).start(t, "")
		if err := up.Dialogue(t.Context(), host.Host{Name: "h"}, s); err != nil {
			t.Fatalf("preserve %v: %v", preserve, err)
		}
		for name, want := range map[string]string{"/old": "new text", "/new": "more"} {
			text, err := os.ReadFile(dest + name)
			info, err2 := os.Stat(dest + name)
			if err != nil || err2 != nil || string(text) != want {
				t.Fatalf("preserve %v, %s: %q, %v, %v", preserve, name, text, err, err2)
			}
			mode := os.FileMode(0o640)
			if name == "/old" && !preserve {
				mode = 0o600
			}
			if info.Mode() != mode || info.ModTime().Equal(then) != preserve {
				t.Errorf("preserve %v, %s: %v %v", preserve, name, info.Mode(), info.ModTime())
			}
		}
		if left := parts(t, dest); left != nil {
			t.Errorf("left behind: %q", left)
		}
	}
}
