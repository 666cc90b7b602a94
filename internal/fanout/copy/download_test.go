package copy

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
)

// A tree arrives as it is, but for what leads out, and a second time nothing is copied.
func TestDownloadTree(t *testing.T) {
	src := tree(t)
	os.Symlink("/etc/passwd", src+"/out1")
	os.Symlink("../../../x", src+"/sub/out2")
	date := func() {
		for _, name := range []string{src, src + "/sub"} {
			os.Chtimes(name, time.Unix(1e9, 0), time.Unix(1e9, 0))
		}
	}
	date()
	dir := t.TempDir()
	s := (&server{}).start(t, "")
	if err := download(t, s, Options{}, 0, dir, src); err != nil {
		t.Fatalf("%v: %s", err, &s.said)
	}
	if !strings.Contains(s.said.String(), "; 2 skipped") || !strings.Contains(s.said.String(), "outside the directory") {
		t.Errorf("said %q", s.said.String())
	}
	os.Remove(src + "/out1")
	os.Remove(src + "/sub/out2")
	date()
	if got, want := listing(t, dir+"/h/src"), listing(t, src); got != want {
		t.Errorf("arrived:\n%s\nwant:\n%s", got, want)
	}
	s = (&server{}).start(t, "")
	if err := download(t, s, Options{}, 0, dir, src); err != nil || !strings.HasPrefix(s.said.String(), "0 files copied; 10 identical") {
		t.Errorf("second time: %v, %s", err, &s.said)
	}
}

// Files of /proc say that they are empty.
func TestDownloadUnsized(t *testing.T) {
	dir := t.TempDir()
	s := (&server{}).start(t, "")
	if err := download(t, s, Options{}, 0, dir, "/proc/version"); err != nil {
		t.Fatalf("%v: %s", err, &s.said)
	}
	want, _ := os.ReadFile("/proc/version")
	if got, _ := os.ReadFile(dir + "/h/version"); string(got) != string(want) {
		t.Errorf("got %q", got)
	}
}

// A host may not send more than was allowed.
func TestDownloadMaxSize(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/a", strings.Repeat("x", 100_000), 0o644)
	s := (&server{}).start(t, "")
	err := download(t, s, Options{}, 50_000, dir, src+"/a")
	if _, missing := os.Stat(dir + "/h/a"); err == nil || missing == nil || !strings.Contains(s.said.String(), "--max-size") {
		t.Errorf("%v, %v, %s", err, missing, &s.said)
	}
}

// What comes goes on where an earlier run ended, and a wrong beginning is found out.
func TestDownloadGoesOn(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	data := strings.Repeat("0123456789abcdef", 1<<17)
	write(t, src+"/a", data, 0o644)
	info, _ := os.Stat(src + "/a")
	for _, part := range []string{data[:1<<20], strings.Repeat("x", 1<<20)} {
		os.RemoveAll(dir + "/h")
		write(t, dir+"/h/"+newPart("h", "a", uint64(info.Size()), uint32(info.ModTime().Unix())).fresh(), part, 0o600)
		s := (&server{}).start(t, "")
		err := download(t, s, Options{}, 0, dir, src+"/a")
		if got, _ := os.ReadFile(dir + "/h/a"); err != nil || string(got) != data {
			t.Errorf("%v, %d bytes, %s", err, len(got), &s.said)
		}
	}
}

// What a run left of a file that another one brought is gone after the next, which finds the file
// in its place.
func TestDownloadClearsWhatIsComplete(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	write(t, src+"/a", "whole", 0o644)
	for _, o := range []Options{{}, {Compare: true}} {
		if err := download(t, (&server{}).start(t, ""), o, 0, dir, src+"/a"); err != nil {
			t.Fatal(err)
		}
		write(t, dir+"/h/"+newPart("h", "a").fresh(), "wh", 0o600)
		s := (&server{}).start(t, "")
		if err := download(t, s, o, 0, dir, src+"/a"); err != nil || !strings.Contains(s.said.String(), "1 identical") {
			t.Errorf("%+v: %v, %s", o, err, &s.said)
		}
		if left := parts(t, dir); left != nil {
			t.Errorf("%+v: left behind: %q", o, left)
		}
	}
}

// liar is a server that says what it likes. No real one can be made to.
type liar struct {
	net.Conn
	mu     sync.Mutex // of said
	said   strings.Builder
	names  []string          // in every directory
	sizes  map[string]uint64 // announced, by name; others are directories
	chunk  func(asked int) []byte
	served int // directories
}

func (l *liar) Banner() string { return "" }

func (l *liar) Output(_ fleet.Stream, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said.Write(data)
	return nil
}

func startLiar(t *testing.T, l *liar) *liar {
	ours, theirs := net.Pipe()
	l.Conn = ours
	go l.serve(theirs)
	t.Cleanup(func() { theirs.Close() })
	return l
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func (l *liar) attrs(b []byte, name string) []byte {
	size, file := l.sizes[filepath.Base(name)]
	mode := uint32(0o040755)
	if file {
		mode = 0o106755 // setuid, too
	}
	b = binary.BigEndian.AppendUint32(b, 1|4)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, size), mode)
}

func (l *liar) serve(c net.Conn) {
	listed := map[string]bool{}
	for {
		var head [5]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:])-1)
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		reply := l.reply(head[4], body, listed)
		c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...))
	}
}

func (l *liar) reply(kind byte, body []byte, listed map[string]bool) []byte {
	if kind == 1 {
		return []byte{2, 0, 0, 0, 3}
	}
	id, arg := body[:4], body[4:]
	text := string(arg[4 : 4+binary.BigEndian.Uint32(arg)])
	status := func(code byte) []byte {
		return append(append([]byte{101}, id...), 0, 0, 0, code, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	switch kind {
	case 7, 17: // LSTAT, STAT
		return l.attrs(append([]byte{105}, id...), text)
	case 11, 3: // OPENDIR, OPEN
		return appendText(append([]byte{102}, id...), strconv.Itoa(len(text)))
	case 12: // READDIR
		if listed[text] || l.served > 300 {
			return status(1)
		}
		listed[text] = true
		l.served++
		b := binary.BigEndian.AppendUint32(append([]byte{104}, id...), uint32(len(l.names)))
		for _, n := range l.names {
			b = l.attrs(appendText(appendText(b, n), "-rw"), n)
		}
		return b
	case 5: // READ
		data := l.chunk(int(binary.BigEndian.Uint32(arg[len(arg)-4:])))
		if data == nil {
			return status(1)
		}
		return appendText(append([]byte{103}, id...), string(data))
	}
	return status(0)
}

func (l *liar) Open(context.Context, string) (io.ReadWriteCloser, error) {
	return nil, fleet.ErrNoExec
}

func (l *liar) Exec(_ context.Context, _ string, _ io.Reader) ([]byte, error) {
	return nil, fleet.ErrNoExec
}

// Nothing that a server says leads out of its directory.
func TestDownloadHostileNames(t *testing.T) {
	names := []string{"../up", "a/b", "/etc/x", "", "..", ".", "good", "good", "nul\x00l", strings.Repeat("l", 256), "up/../../x"}
	sizes := map[string]uint64{}
	for _, n := range names {
		sizes[filepath.Base(n)] = 4
	}
	dir := t.TempDir()
	os.Mkdir(dir+"/in", 0o700)
	l := startLiar(t, &liar{names: names, sizes: sizes, chunk: func(int) []byte { return []byte("evil") }})
	err := download(t, l, Options{}, 0, dir+"/in", "/x/directory")
	if err == nil || l.said.Len() == 0 {
		t.Errorf("error %v, said %q", err, l.said.String())
	}
	var all []string
	filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir))
		}
		return nil
	})
	if len(all) != 1 || all[0] != "/in/h/directory/good" {
		t.Errorf("made: %q\n%s", all, &l.said)
	}
	if info, _ := os.Stat(dir + "/in/h/directory/good"); info == nil || info.Mode()&os.ModeSetuid != 0 {
		t.Errorf("mode %v", info)
	}
}

// A link that stands in our directory already does not lead out of it.
func TestDownloadThroughPlantedLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	os.Mkdir(dir+"/h", 0o700)
	os.Symlink(outside, dir+"/h/directory")
	l := startLiar(t, &liar{names: []string{"evil"}, sizes: map[string]uint64{"evil": 4}, chunk: func(int) []byte { return []byte("evil") }})
	err := download(t, l, Options{}, 0, dir, "/x/directory")
	if list, _ := os.ReadDir(outside); err == nil || len(list) > 0 {
		t.Errorf("%v, %d files outside", err, len(list))
	}
}

// Sizes that are not true, and directories without an end.
func TestDownloadLies(t *testing.T) {
	for name, test := range map[string]struct {
		l    *liar
		want string
	}{
		"ends early":    {&liar{names: []string{"f"}, sizes: map[string]uint64{"f": 1000}, chunk: func(int) []byte { return nil }}, "ends after 0 of 1000 bytes"},
		"more data":     {&liar{names: []string{"f"}, sizes: map[string]uint64{"f": 10}, chunk: func(n int) []byte { return make([]byte, n+1) }}, ""},
		"no data":       {&liar{names: []string{"f"}, sizes: map[string]uint64{"f": 10}, chunk: func(int) []byte { return []byte{} }}, ""},
		"endless":       {&liar{names: []string{"f"}, sizes: map[string]uint64{"f": 0}, chunk: func(n int) []byte { return make([]byte, n) }}, "has no size and more than"},
		"huge":          {&liar{names: []string{"f"}, sizes: map[string]uint64{"f": 1 << 63}, chunk: func(n int) []byte { return make([]byte, n) }}, "does not say how large"},
		"deep":          {&liar{names: []string{"directory"}}, "deep"},
		"terabytes say": {&liar{names: []string{"f"}, sizes: map[string]uint64{"f": 1 << 40}, chunk: func(n int) []byte { return make([]byte, n) }}, "--max-size"},
	} {
		dir := t.TempDir()
		l := startLiar(t, test.l)
		err := download(t, l, Options{}, 1<<25, dir, "/x/directory")
		if err == nil || !strings.Contains(l.said.String(), test.want) {
			t.Errorf("%s: %v, said %q, want %q", name, err, l.said.String(), test.want)
		}
		if _, err := os.Stat(dir + "/h/directory/f"); err == nil {
			t.Errorf("%s: the file was made", name)
		}
	}
}

// A file that is rewritten while it is read, where no command compares it, arrives as it is then.
func TestRewrittenWithoutComparison(t *testing.T) {
	dir, got := t.TempDir(), t.TempDir()
	write(t, dir+"/f", strings.Repeat("a", 2*large), 0o644)
	os.Chtimes(dir+"/f", time.Unix(1e9, 0), time.Unix(1e9, 0))
	ended := make(chan error)
	s := (&server{noExec: true}).start(t, "")
	go func() { ended <- download(t, s, Options{Limit: NewLimiter(4 * large)}, 0, got, dir+"/f") }()
	waittest.Until(t, "the first bytes", func() bool {
		list := parts(t, got+"/h")
		if len(list) == 0 {
			return false
		}
		info, err := os.Stat(list[0])
		return err == nil && info.Size() > 0
	})
	f, err := os.OpenFile(dir+"/f", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(strings.Repeat("b", 2*large))
	f.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	holdsText(t, got+"/h/f", strings.Repeat("b", 2*large))
}
