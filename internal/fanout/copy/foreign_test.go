package copy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// replacing makes a source with files and links, and a destination where each is of the other kind,
// or has another content.
func replacing(t *testing.T) (src, dest string) {
	t.Helper()
	dir := t.TempDir()
	src, dest = dir+"/src", dir+"/dest"
	for i := range 70 {
		write(t, fmt.Sprint(src, "/many/", i), "new", 0o644)
		write(t, fmt.Sprint(dest, "/src/many/", i), "an old one", 0o644)
	}
	write(t, src+"/a", "new", 0o755)
	write(t, src+"/was link", "file", 0o644)
	write(t, dest+"/src/a", "an old one", 0o644)
	write(t, dest+"/src/was file", "an old one", 0o644)
	write(t, dest+"/src/precious", "precious", 0o644)
	for name, target := range map[string]string{
		src + "/was file": "a", src + "/current": "many", src + "/new": "a", src + "/sub": "..",
		dest + "/src/was link": "precious", dest + "/src/current": "precious",
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	return src, dest
}

// Whatever a server refuses, all arrives, nothing else is touched, and nothing of ours stays. What
// it does not set of modes and times is said.
func TestServersThatRefuse(t *testing.T) {
	for _, tt := range []struct {
		denied string
		noExec bool
		says   string
		fails  string // what cannot be replaced safely
		times  bool
	}{
		{denied: "", times: true},
		{denied: "posix-rename", times: true},
		{denied: "posix-rename", noExec: true, times: true},
		{denied: "posix-rename,rename", says: "72 files written in place", fails: "was file", times: true},
		{denied: "posix-rename,rename", noExec: true, says: "72 files written in place", fails: "was file", times: true},
		{denied: "fsetstat", times: true},
		{denied: "setstat,fsetstat", says: "mode and time of 2 directories not set"},
		{denied: "setstat,fsetstat", noExec: true, says: "mode and time of 72 files not set"},
		{denied: "realpath", says: "the host does not say where SFTP begins", times: true},
	} {
		t.Run(fmt.Sprint(tt.denied, tt.noExec), func(t *testing.T) {
			src, dest := replacing(t)
			os.Remove(dest + "/src/many/1")
			s := (&server{denied: tt.denied, noExec: tt.noExec}).start(t, "")
			said, err := upload(t, t.Context(), s, Options{}, dest, src)
			if (err != nil) != (tt.fails != "") || !strings.Contains(said, tt.says) || tt.fails != "" && !strings.HasPrefix(said, dest+"/src/"+tt.fails+": Permission denied\n75 files copied") {
				t.Fatalf("%v, said %q", err, said)
			}
			if tt.fails != "" {
				if data, _ := os.ReadFile(dest + "/src/" + tt.fails); string(data) != "an old one" {
					t.Errorf("what cannot be replaced has %d bytes", len(data))
				}
				os.Remove(dest + "/src/" + tt.fails)
				os.Remove(src + "/" + tt.fails)
			}
			if data, _ := os.ReadFile(dest + "/src/precious"); string(data) != "precious" {
				t.Errorf("another file has %d bytes", len(data))
			}
			os.Remove(dest + "/src/precious")
			got, want := contents(t, dest+"/src"), contents(t, src)
			if !tt.times {
				got, want = untimed(got), untimed(want)
			}
			if got != want {
				t.Errorf("arrived:\n%s\nwant:\n%s", got, want)
			}
			if left := parts(t, dest); left != nil {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// untimed is contents without modes and times.
func untimed(list string) string {
	var b strings.Builder
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		b.WriteString(words[0] + " " + words[len(words)-1] + "\n")
	}
	return b.String()
}

// A server that cannot rename leaves what is there, where writing into it would not be safe.
func TestKeepsWhatCannotBeReplaced(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	dir := t.TempDir()
	write(t, dir+"/new", "new", 0o644)
	write(t, dir+"/there/file", "an old one", 0o644)
	if err := os.Chown(dir+"/there/file", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	s := (&server{denied: "posix-rename,rename"}).start(t, "")
	said, err := upload(t, t.Context(), s, Options{}, dir+"/there/file", dir+"/new")
	if data, _ := os.ReadFile(dir + "/there/file"); err == nil || string(data) != "an old one" || !strings.Contains(said, "the host does not replace it: Permission denied") {
		t.Errorf("%v, %q, said %q", err, data, said)
	}
	if left := parts(t, dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// Nor does a part stay of a file that the host does not open for writing.
func TestKeepsWhatIsReadOnly(t *testing.T) {
	const nobody = 65534
	src, dir := t.TempDir()+"/src", sshtest.OpenDir(t, 0o755)
	write(t, src, "new", 0o644)
	write(t, dir+"/file", "an old one", 0o444)
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chown(dir+"/file", nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	said, err := upload(t, t.Context(), (&server{denied: "posix-rename,rename", by: nobody}).start(t, ""), Options{}, dir+"/file", src)
	if data, _ := os.ReadFile(dir + "/file"); err == nil || string(data) != "an old one" {
		t.Errorf("%v, holds %q, said %q", err, data, said)
	}
	if left := parts(t, dir); left != nil {
		t.Errorf("left behind: %q; said %q", left, said)
	}
}

// Whenever a copy ends that writes a file in place, nothing is left of it after the next one.
func TestEndsWhileInPlace(t *testing.T) {
	src := t.TempDir() + "/src"
	write(t, src, strings.Repeat("a line\n", 100_000), 0o644)
	copied := func(dir string, dieAt int64) *server {
		s := (&server{denied: "rename,posix-rename", noExec: true, dieAt: dieAt}).start(t, "")
		if said, err := upload(t, t.Context(), s, Options{}, dir+"/file", src); err != nil && dieAt == 0 {
			t.Errorf("%v, said %q", err, said)
		}
		return s
	}
	all := copied(t.TempDir(), 0).sent.Load()
	for before := int64(0); before < 500; before += 50 {
		dir := t.TempDir()
		copied(dir, all-before)
		copied(dir, 0)
		if got, left := contents(t, dir+"/file"), parts(t, dir); got != contents(t, src) || left != nil {
			t.Errorf("after an end %d bytes before that of all: %s, left %q", before, got, left)
		}
	}
}

// A complete part of a file that nobody may write to is continued with.
func TestGoesOnWithWhatIsReadOnly(t *testing.T) {
	const nobody = 65534
	src, dir := t.TempDir()+"/src", sshtest.OpenDir(t, 0o755)
	write(t, src, strings.Repeat("a line\n", 300_000), 0o444)
	part := uploadPart(t, dir+"/file", src)
	write(t, part, strings.Repeat("a line\n", 300_000), 0o444)
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chown(part, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	s := (&server{by: nobody, noExec: true}).start(t, "")
	said, err := upload(t, t.Context(), s, Options{}, dir+"/file", src)
	if err != nil || s.sent.Load() > 1<<20 {
		t.Fatalf("%v, said %q, %d bytes were sent", err, said, s.sent.Load())
	}
	if got, want := contents(t, dir+"/file"), contents(t, src); got != want {
		t.Errorf("arrived: %s, want %s", got, want)
	}
	if left := parts(t, dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// A link that leads nowhere, at a server that does not say so, is replaced by a file, or stays.
func TestLinksThatAreNotSeen(t *testing.T) {
	for denied, replaced := range map[string]bool{"lstat": true, "lstat,posix-rename": true, "lstat,readdir,posix-rename,rename": false} {
		dir := t.TempDir()
		write(t, dir+"/new", "new", 0o644)
		os.Mkdir(dir+"/there", 0o755)
		if err := os.Symlink("nowhere", dir+"/there/file"); err != nil {
			t.Fatal(err)
		}
		said, err := upload(t, t.Context(), (&server{denied: denied}).start(t, ""), Options{}, dir+"/there/file", dir+"/new")
		data, _ := os.ReadFile(dir + "/there/file")
		target, _ := os.Readlink(dir + "/there/file")
		if (err == nil) != replaced || replaced != (string(data) == "new") || replaced == (target == "nowhere") {
			t.Errorf("%s: %v, holds %q, leads to %q, said %q", denied, err, data, target, said)
		}
		if left := parts(t, dir); left != nil {
			t.Errorf("%s: left behind: %q", denied, left)
		}
	}
}

// What stood aside when a copy was killed goes back, even if the next one fails.
func TestWhatStoodAsideGoesBack(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/new", "new", 0o644)
	write(t, dir+"/there/"+filepath.Base(newPart("h", dir+"/there/file").aside().fresh()), "old", 0o644)
	source, err := Scan(dir+"/new", nil)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(dir + "/new")
	u := Upload{Dest: dir + "/there/file", Sources: func(host.Host) ([]*Source, error) { return []*Source{source}, nil }}
	s := (&server{denied: "posix-rename"}).start(t, "")
	err = u.Dialogue(t.Context(), host.Host{Name: "h"}, s)
	if data, _ := os.ReadFile(dir + "/there/file"); err == nil || string(data) != "old" {
		t.Errorf("%v, %q, said %q", err, data, &s.said)
	}
	if left := parts(t, dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// Commands run where SFTP begins, whatever a start-up file does; where they cannot, none is asked
// about a file.
func TestCommandsAndSFTPInOneDirectory(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, dir+"/src/file", "the same", 0o644)
	write(t, elsewhere+"/file", "the same", 0o644)
	for name, tt := range map[string]struct{ setup, want string }{
		"start-up file": {"cd " + dir + "/there && true", "1 file copied, 8 B\n"},
		"another root":  {"mount -t tmpfs none there && mkdir there/home && cd there/home && echo other >file", "the host runs commands in another directory than SFTP\n"},
	} {
		os.RemoveAll(dir + "/there")
		write(t, dir+"/there/file", "other", 0o644)
		s := (&server{where: elsewhere}).start(t, "cd "+dir+" && "+tt.setup)
		s.noExec = false
		said, err := upload(t, t.Context(), s, Options{Compare: true}, "file", dir+"/src/file")
		if err != nil || !strings.HasPrefix(said, "1 file copied") || !strings.HasSuffix(said, tt.want) {
			t.Errorf("%s: %v, said %q", name, err, said)
		}
	}
	os.RemoveAll(dir + "/there")
	write(t, dir+"/there/log", "log", 0o644)
	s := (&server{before: "cd " + elsewhere + "; "}).start(t, "cd "+dir+"/there && true")
	s.noExec = false
	if err := download(t, s, Options{}, 0, dir+"/got", "log"); err != nil || s.said.String() != "1 file copied, 3 B\n" {
		t.Errorf("%v, said %q", err, &s.said)
	}
}

// No directory for tar stays where no command runs.
func TestNoDirectoryStays(t *testing.T) {
	src := many(t)
	for name, s := range map[string]*server{
		"no session": {noExec: true},
		"silent":     {before: "exit 0; "},
		"eats all":   {before: "cat >/dev/null; "},
		"killed":     {before: "kill -9 $$; "},
	} {
		dest := t.TempDir()
		if said, err := upload(t, t.Context(), s.start(t, ""), Options{}, dest, src); err != nil {
			t.Errorf("%s: %v, said %q", name, err, said)
		}
		if left := parts(t, dest); left != nil {
			t.Errorf("%s: left behind: %q", name, left)
		}
	}
}

// The end of a run leaves of small files nothing, and names what it leaves of a large one.
func TestUploadEndsCleanly(t *testing.T) {
	for name, noExec := range map[string]bool{"tar": false, "SFTP": true} {
		dir := t.TempDir()
		for i := range 100 {
			write(t, fmt.Sprint(dir, "/src/", i), strings.Repeat("x", 60_000), 0o644)
		}
		write(t, dir+"/large", strings.Repeat("x", 3<<20), 0o644)
		for _, src := range []string{dir + "/src", dir + "/large"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				waittest.Comes(func() bool { return ctx.Err() != nil || parts(t, dir) != nil })
				time.Sleep(100 * time.Millisecond)
				cancel(fleet.ErrInterrupted)
			}()
			said, err := upload(t, ctx, (&server{noExec: noExec}).start(t, ""), Options{Limit: NewLimiter(4 << 20)}, dir+"/there", src)
			if !errors.Is(err, fleet.ErrInterrupted) {
				t.Fatalf("%s: %v, said %q", name, err, said)
			}
			left := parts(t, dir)
			if src == dir+"/src" && left != nil || src == dir+"/large" && (len(left) != 1 || !strings.Contains(said, left[0]+": stays on the host; run the same copy")) {
				t.Errorf("%s, %s: left %q, said %q", name, src, left, said)
			}
		}
	}
}

// A device, FIFO or socket is never replaced, nor is a link to one.
func TestSpecialFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/new", "new", 0o644)
	os.Symlink("new", dir+"/newlink")
	os.Mkdir(dir+"/there", 0o755)
	if err := errors.Join(syscall.Mkfifo(dir+"/there/new", 0o600), syscall.Mkfifo(dir+"/there/newlink", 0o600), os.Symlink("new", dir+"/there/link")); err != nil {
		t.Fatal(err)
	}
	os.MkdirAll(dir+"/links", 0o755)
	os.Symlink("x", dir+"/links/newlink")
	for source, dest := range map[string]string{dir + "/new": "/there/new", dir + "/new ": "/there/link", dir + "/links/": "/there"} {
		said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dir+dest, strings.TrimSpace(source))
		if err == nil || !strings.Contains(said, "is a device, FIFO or socket on the host") {
			t.Errorf("%s: %v, said %q", dest, err, said)
		}
	}
	for _, name := range []string{"/there/new", "/there/newlink"} {
		if info, err := os.Lstat(dir + name); err != nil || info.Mode().Type() != os.ModeNamedPipe {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// A file that another file system is mounted on is written in place; where its directory cannot be
// written to, that is said.
func TestFilesThatNothingReplaces(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	dir := t.TempDir()
	write(t, dir+"/new", "new", 0o644)
	write(t, dir+"/mounted", "an old one", 0o644)
	write(t, dir+"/there/file", "", 0o644)
	s := (&server{}).start(t, "mount --bind "+dir+"/mounted "+dir+"/there/file")
	said, err := upload(t, t.Context(), s, Options{}, dir+"/there/file", dir+"/new")
	if data, _ := os.ReadFile(dir + "/mounted"); err != nil || string(data) != "new" || !strings.Contains(said, "1 file written in place") {
		t.Errorf("%v, %q, said %q", err, data, said)
	}
	os.Chmod(filepath.Dir(dir), 0o755)
	os.Chmod(dir, 0o755)
	s = (&server{}).start(t, "setpriv --reuid=65534 --regid=65534 --clear-groups "+sftpServer+"; exit 0; true")
	said, err = upload(t, t.Context(), s, Options{}, dir+"/there/file", dir+"/new")
	if err == nil || !strings.Contains(said, "Permission denied: the directory "+dir+"/there must be writable") {
		t.Errorf("%v, said %q", err, said)
	}
	if left := parts(t, dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// A file whose size the host reports wrong arrives if its cksum confirms it, and is not kept
// otherwise.
func TestDownloadOfLess(t *testing.T) {
	const name = "/sys/class/net/lo/mtu"
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := (&server{}).start(t, "")
	if err := download(t, s, Options{}, 0, dir, name); err != nil || s.said.String() != fmt.Sprintf("1 file copied, %d B\n", len(want)) {
		t.Errorf("%v, said %q", err, &s.said)
	}
	if got, _ := os.ReadFile(dir + "/h/mtu"); string(got) != string(want) {
		t.Errorf("got %q", got)
	}
	s = (&server{noExec: true}).start(t, "")
	if err := download(t, s, Options{}, 0, t.TempDir(), name); err == nil || !strings.Contains(s.said.String(), "ends after") {
		t.Errorf("%v, said %q", err, &s.said)
	}
}

// A file that is here already gets the mode that it has on the host, and with --checksum its time.
func TestDownloadSetsModes(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/f", "text", 0o640)
	info, _ := os.Stat(src + "/f")
	for _, o := range []Options{{}, {}, {Compare: true}} {
		if o.Compare {
			os.Chtimes(dir+"/h/f", time.Now(), time.Now())
		}
		s := (&server{}).start(t, "")
		if err := download(t, s, o, 0, dir, src+"/f"); err != nil {
			t.Fatalf("%v: %s", err, &s.said)
		}
		got, err := os.Stat(dir + "/h/f")
		if err != nil || got.Mode() != info.Mode() || got.ModTime().Unix() != info.ModTime().Unix() {
			t.Errorf("%+v: %v %v, %v", o, got.Mode(), got.ModTime(), err)
		}
		os.Chmod(dir+"/h/f", 0o600)
	}
}

// What an interrupted fetch leaves in a directory that a group can write to is continued with,
// unless it has another name or owner.
func TestDownloadPartsInSharedDirectories(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/d/f", strings.Repeat("0123456789abcdef", 1<<18), 0o644)
	os.Chmod(src+"/d", 0o775)
	killed(t, dir, src+"/d", Options{})
	os.Chmod(dir+"/h/d", 0o775)
	old := filepath.Base(parts(t, dir)[0])
	s := (&server{}).start(t, "")
	if err := download(t, s, Options{}, 0, dir, src+"/d"); err != nil || strings.HasPrefix(s.said.String(), "1 file copied, 4.0 MiB") {
		t.Errorf("%v, said %q", err, &s.said)
	}
	if left := parts(t, dir); left != nil {
		t.Errorf("left behind: %q", left)
	}
	write(t, dir+"/precious", "precious", 0o600)
	if err := errors.Join(os.Remove(dir+"/h/d/f"), os.Link(dir+"/precious", dir+"/h/d/"+old)); err != nil {
		t.Fatal(err)
	}
	if err := download(t, (&server{}).start(t, ""), Options{}, 0, dir, src+"/d"); err != nil || len(parts(t, dir)) != 1 {
		t.Errorf("%v, left %q", err, parts(t, dir))
	}
	if data, _ := os.ReadFile(dir + "/precious"); string(data) != "precious" {
		t.Errorf("another file has %d bytes", len(data))
	}
}
