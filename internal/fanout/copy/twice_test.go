package copy

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// sizes are a file or two of each kind: small, large, poured, and as many as are packed.
func sizes(t *testing.T) string {
	t.Helper()
	src := t.TempDir() + "/src"
	for i := range 80 {
		write(t, fmt.Sprintf("%s/many/%d", src, i), strings.Repeat(fmt.Sprint(i), 2000), 0o644)
	}
	write(t, src+"/small", strings.Repeat("s", 900_000), 0o644)
	write(t, src+"/large", strings.Repeat("0123456789abcdef", 1<<17), 0o644)
	write(t, src+"/huge", strings.Repeat("0123456789abcdef", huge/16+100), 0o644)
	return src
}

// inMemory is a directory in which copies take each other's parts most often: on a disk they are
// too slow for that.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "sshpace-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Several copies into one place at a time, as of two people or of a job that takes longer than its
// interval, do not disturb each other: who says that all is well has all in place.
func TestAtOnce(t *testing.T) {
	src := sizes(t)
	want := contents(t, src)
	for _, o := range []Options{{}, {NoVerify: true}} {
		for name, copy := range map[string]func(s *server, dir string) error{
			"fetch": func(s *server, dir string) error { return download(t, s, o, 0, dir, src) },
			"copy": func(s *server, dir string) error {
				os.Mkdir(dir+"/h", 0o755)
				source, err := Scan(src, nil)
				if err != nil {
					return err
				}
				u := Upload{Options: o, Dest: dir + "/h", Sources: func(host.Host) ([]*Source, error) { return []*Source{source}, nil }}
				return u.Dialogue(t.Context(), host.Host{Name: "h"}, s)
			},
		} {
			dir := inMemory(t)
			var all sync.WaitGroup
			for i := range 4 {
				s := (&server{}).start(t, "")
				all.Go(func() {
					time.Sleep(time.Duration(i) * 20 * time.Millisecond) // none begins as another does
					if err := copy(s, dir); err != nil {
						t.Errorf("%s %+v: %v: %s", name, o, err, &s.said)
					} else if wrong := incomplete(src, dir+"/h/src"); wrong != nil {
						t.Errorf("%s %+v: rc 0 with %q", name, o, wrong)
					}
				})
			}
			all.Wait()
			if got := contents(t, dir+"/h/src"); got != want {
				t.Errorf("%s %+v: arrived:\n%s\nwant:\n%s", name, o, got, want)
			}
			if left := parts(t, dir); left != nil {
				t.Errorf("%s %+v: left behind: %q", name, o, left)
			}
		}
	}
}

// incomplete are the files that are not in their place as they should be.
func incomplete(src, dest string) (wrong []string) {
	filepath.WalkDir(src, func(at string, d os.DirEntry, _ error) error {
		want, _ := os.ReadFile(at)
		if got, err := os.ReadFile(dest + strings.TrimPrefix(at, src)); d.Type().IsRegular() && (err != nil || string(got) != string(want)) {
			wrong = append(wrong, fmt.Sprintf("%s: %d of %d bytes, %v", at, len(got), len(want), err))
		}
		return nil
	})
	return wrong
}

// after is a host at which something happens before it is asked for the nth checksum.
type after struct {
	*server
	calls  int
	happen func(call int)
}

func (a *after) Exec(ctx context.Context, line string, input io.Reader) ([]byte, error) {
	return a.server.Exec(ctx, line, &asked{Reader: input, of: a})
}

// asked is the input of a command, which may come long after that.
type asked struct {
	io.Reader
	of   *after
	came bool
}

func (a *asked) Read(p []byte) (n int, err error) {
	if n, err = a.Reader.Read(p); n > 0 && !a.came {
		a.came = true
		a.of.calls++
		a.of.happen(a.of.calls)
	}
	return n, err
}

var _ fleet.Channel = (*after)(nil)

// appendTo makes a file longer.
func appendTo(t *testing.T, name, text string) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Error(err)
	}
}

// A log that is written while it is fetched arrives as it was in the beginning, and one that is
// replaced as it is then; what never stands still is an error.
func TestDownloadChanging(t *testing.T) {
	for name, tt := range map[string]struct {
		happen func(t *testing.T, name string, call int)
		want   func(call string) bool
		err    bool
	}{
		"grows":       {func(t *testing.T, name string, _ int) { appendTo(t, name, "more\n") }, func(got string) bool { return got == "one\ntwo\n" }, false},
		"replaced":    {func(t *testing.T, name string, call int) { write(t, name, "new and other\n", 0o644) }, func(got string) bool { return got == "new and other\n" }, false},
		"never still": {func(t *testing.T, name string, call int) { write(t, name, fmt.Sprint("now ", call), 0o644) }, func(got string) bool { return got == "" }, true},
	} {
		src, dir := t.TempDir(), t.TempDir()
		write(t, src+"/log", "one\ntwo\n", 0o644)
		s := &after{server: (&server{}).start(t, ""), happen: func(call int) { tt.happen(t, src+"/log", call) }}
		err := download(t, s, Options{}, 0, dir, src+"/log")
		got, _ := os.ReadFile(dir + "/h/log")
		if (err != nil) != tt.err || !tt.want(string(got)) {
			t.Errorf("%s: %v, %q, said %q", name, err, got, &s.said)
		}
	}
}

// killed leaves what a run leaves that is killed in the middle of a file.
func killed(t *testing.T, dir, src string, o Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o.Limit = NewLimiter(4 << 20)
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			for _, p := range parts(t, dir) {
				if info, err := os.Stat(p); err == nil && info.Size() > 600_000 {
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	d := Download{Options: o, Dir: dir, Sources: []string{src}}
	d.Dialogue(ctx, host.Host{Name: "h"}, (&server{}).start(t, ""))
	if left := parts(t, dir); len(left) != 1 {
		t.Fatalf("left: %q", left)
	}
}

// What an interrupted fetch has left is never the beginning of another content, though its size and
// time are the same, and is gone after the next one.
func TestDownloadMixesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		o      Options
		noExec bool
		later  time.Duration
	}{
		"compared":     {},
		"not compared": {o: Options{NoVerify: true}},
		"no command":   {noExec: true},
		"another time": {later: time.Minute},
	} {
		src, dir := t.TempDir(), t.TempDir()
		write(t, src+"/f", strings.Repeat("old.", 1<<22), 0o644) // takes seconds, in which killed comes in time
		info, _ := os.Stat(src + "/f")
		killed(t, dir, src+"/f", tt.o)
		text := strings.Repeat("new!", 1<<22)
		write(t, src+"/f", text, 0o644)
		os.Chtimes(src+"/f", info.ModTime(), info.ModTime().Add(tt.later))
		s := (&server{noExec: tt.noExec}).start(t, "")
		err := download(t, s, tt.o, 0, dir, src+"/f")
		if got, _ := os.ReadFile(dir + "/h/f"); err != nil || string(got) != text {
			t.Errorf("%s: %v, %d of %d bytes are new; said %q", name, err, strings.Count(string(got), "new!")*4, len(text), &s.said)
		}
		if left := parts(t, dir); left != nil {
			t.Errorf("%s: left behind: %q", name, left)
		}
	}
}

// What an interrupted copy has left at the host is gone after the next one, whether the file is
// still the same or not, and never mixed with another content.
func TestUploadMixesNothing(t *testing.T) {
	for _, o := range []Options{{}, {NoVerify: true}} {
		for name, change := range map[string]func(name string) string{
			"the same": func(name string) string { data, _ := os.ReadFile(name); return string(data) },
			"changed, same size and time": func(name string) string {
				info, _ := os.Stat(name)
				text := strings.Repeat("new!", 1<<20)
				write(t, name, text, 0o644)
				os.Chtimes(name, info.ModTime(), info.ModTime())
				return text
			},
			"shorter": func(name string) string { write(t, name, "new", 0o644); return "new" },
		} {
			dir := t.TempDir()
			write(t, dir+"/new", strings.Repeat("old.", 1<<20), 0o644)
			write(t, dir+"/there/file", "x", 0o644)
			if _, err := upload(t, t.Context(), (&server{dieAt: 2 << 20}).start(t, ""), o, dir+"/there/file", dir+"/new"); err == nil || len(parts(t, dir)) != 1 {
				t.Fatalf("%s: %v, left %q", name, err, parts(t, dir))
			}
			text := change(dir + "/new")
			s := (&server{}).start(t, "")
			said, err := upload(t, t.Context(), s, o, dir+"/there/file", dir+"/new")
			if got, _ := os.ReadFile(dir + "/there/file"); err != nil || string(got) != text {
				t.Errorf("%s %+v: %v, %d bytes, said %q", name, o, err, len(got), said)
			}
			if left := parts(t, dir); left != nil {
				t.Errorf("%s %+v: left behind: %q", name, o, left)
			}
			if sent := s.sent.Load(); name == "the same" && sent > 3<<20 {
				t.Errorf("%d bytes were sent again", sent)
			}
		}
	}
}

// Accounts that print when a command begins are asked like others; those that run no commands are
// told from them, and why is said.
func TestAccountsThatPrint(t *testing.T) {
	src := many(t)
	for name, tt := range map[string]struct {
		before string
		noExec bool
		want   string // in what is said
	}{
		"prints":    {before: "echo Welcome; echo; seq 1000; ", want: "identical\n"},
		"refuses":   {before: "echo This account is currently not available.; exit 1; ", want: `the host runs no commands for this account: "This account is currently not available."`},
		"silent":    {before: "exit 0; ", want: "the host runs no commands for this account\n"},
		"no second": {noExec: true, want: "the host gives no session for its cksum\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := (&server{before: tt.before, noExec: tt.noExec}).start(t, "")
			if err := download(t, s, Options{}, 0, dir, src); err != nil || name != "prints" && !strings.Contains(s.said.String(), "not verified: "+strings.TrimSpace(tt.want)) {
				t.Errorf("fetch: %v, said %q", err, &s.said)
			}
			if got, want := contents(t, dir+"/h/src"), contents(t, src); got != want {
				t.Errorf("arrived:\n%s\nwant:\n%s", got, want)
			}
			dest := t.TempDir()
			for _, want := range []string{fmt.Sprint(manyFiles, " files copied"), fmt.Sprint("0 files copied; ", manyFiles, " identical")} {
				s := (&server{before: tt.before, noExec: tt.noExec}).start(t, "")
				said, err := upload(t, t.Context(), s, Options{Compare: true}, dest, src)
				if err != nil || !strings.HasPrefix(said, want) || name != "prints" && !strings.Contains(said, tt.want) {
					t.Errorf("copy: %v, said %q, want %q", err, said, want)
				}
				if name == "prints" && s.sent.Load() > 2_300_000 {
					t.Errorf("%d bytes by SFTP", s.sent.Load())
				}
			}
		})
	}
}

// fetch --checksum asks once for many files.
func TestDownloadCompareAsksOnce(t *testing.T) {
	src, dir := many(t), t.TempDir()
	if err := download(t, (&server{}).start(t, ""), Options{}, 0, dir, src); err != nil {
		t.Fatal(err)
	}
	s := (&server{}).start(t, "")
	if err := download(t, s, Options{Compare: true}, 0, dir, src); err != nil || s.execs.Load() > 2 || !strings.HasPrefix(s.said.String(), "0 files copied") {
		t.Errorf("%v, %d commands, said %q", err, s.execs.Load(), &s.said)
	}
}

// A slash at the end stands for what is in a directory, and ~user for a home directory, as rsync
// has it.
func TestNames(t *testing.T) {
	src := t.TempDir()
	write(t, src+"/d/sub/f", "x", 0o644)
	for source, want := range map[string]string{
		src + "/d": "d/sub/f", src + "/d/": "sub/f", src + "/d/.": "sub/f", src + "/d/sub/..": "sub/f", src + "/d/sub/f": "f", src + "/d//": "sub/f",
	} {
		dir := t.TempDir()
		s := (&server{}).start(t, "")
		if err := download(t, s, Options{}, 0, dir, source); err != nil {
			t.Errorf("%s: %v, %s", source, err, &s.said)
		}
		if _, err := os.Stat(dir + "/h/" + want); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
	if os.Geteuid() == 0 {
		dir, name := t.TempDir(), "sshpace-test-"+filepath.Base(src)
		at := homeOf(t, "root") + "/" + name
		t.Cleanup(func() { os.Remove(at) })
		write(t, at, "x", 0o600)
		s := (&server{}).start(t, "")
		if err := download(t, s, Options{}, 0, dir, "~root/"+name); err != nil {
			t.Errorf("%v, said %q", err, &s.said)
		}
	}
	s := (&server{}).start(t, "")
	if err := download(t, s, Options{}, 0, t.TempDir(), "~no-such-user/x"); err == nil || !strings.Contains(s.said.String(), "~no-such-user/x: ") {
		t.Errorf("%v, said %q", err, &s.said)
	}
}

// Directories that are there get mode and time of the original, but for the one that the user named
// for what is in another.
func TestUploadDirectoryModes(t *testing.T) {
	src, dest := t.TempDir()+"/src", t.TempDir()
	write(t, src+"/d/f", "x", 0o644)
	then := time.Unix(1e9, 0)
	for _, at := range []string{src + "/d", src} {
		os.Chmod(at, 0o750)
		os.Chtimes(at, then, then)
	}
	os.MkdirAll(dest+"/d", 0o500)
	os.Chmod(dest, 0o711)
	if said, err := upload(t, t.Context(), (&server{}).start(t, ""), Options{}, dest, src+"/"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for name, want := range map[string]os.FileMode{dest: 0o711, dest + "/d": 0o750} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want || (name != dest) != info.ModTime().Equal(then) {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), info.ModTime(), want)
		}
	}
}

// What is not a file, directory or link is an error where it is named.
func TestScanOfPipe(t *testing.T) {
	name := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Scan(name, nil); err == nil || !strings.Contains(err.Error(), "is not a file, directory or link") {
		t.Errorf("error %v", err)
	}
}

func homeOf(t *testing.T, name string) string {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return u.HomeDir
}
