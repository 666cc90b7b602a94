package copy

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
)

// chains are trees of links each of which looks harmless, or that together lead out.
var chains = map[string][]string{
	"through itself":   {"b -> .", "z -> b/b/../../../etc/shadow"},
	"made after":       {"a -> z/../../../outside", "z -> ."},
	"made before":      {"a -> .", "z -> a/../../../outside"},
	"link to a link":   {"a -> .", "b -> a", "c -> b/a/../../../outside"},
	"deeper":           {"d/e/up -> ../..", "z -> d/e/up/../../outside"},
	"a name and back":  {"z -> file/../../../outside"},
	"at the root":      {"z -> ../../outside"},
	"absolute":         {"z -> /etc/shadow"},
	"absolute, slashy": {"z -> //etc/shadow"},
	"dots":             {"z -> ./.././../outside"},
	"to a directory":   {"a -> d", "d/x -> ../../../outside"},
}

// No link that arrives leads out of the directory of its host, in whatever order they come and
// whatever they lead through.
func TestDownloadLinksStayInside(t *testing.T) {
	for name, links := range chains {
		t.Run(name, func(t *testing.T) {
			src, dir := t.TempDir()+"/src", t.TempDir()
			write(t, src+"/file", "x", 0o644)
			write(t, src+"/d/e/file", "x", 0o644)
			write(t, dir+"/outside", "x", 0o644)
			for _, link := range links {
				at, target, _ := strings.Cut(link, " -> ")
				if err := os.Symlink(target, src+"/"+at); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second time all that is kept is there already
				s := (&server{}).start(t, "")
				if err := download(t, s, Options{}, 0, dir, src); err != nil || !strings.Contains(s.said.String(), "skipped") {
					t.Errorf("%v, said %q", err, &s.said)
				}
			}
			insideOnly(t, dir+"/h")
		})
	}
}

// insideOnly follows each link of a tree.
func insideOnly(t *testing.T, root string) {
	t.Helper()
	root, _ = filepath.EvalSymlinks(root)
	filepath.WalkDir(root, func(at string, d os.DirEntry, _ error) error {
		if d.Type() == os.ModeSymlink {
			target, _ := os.Readlink(at)
			if real, err := filepath.EvalSymlinks(at); err == nil && real != root && !strings.HasPrefix(real, root+"/") {
				t.Errorf("%s -> %s leads to %s", at, target, real)
			} else if err != nil && !strings.Contains(err.Error(), "too many") && !strings.Contains(err.Error(), root+"/") {
				t.Errorf("%s -> %s looks outside: %v", at, target, err)
			}
		}
		return nil
	})
}

// Random trees of links, all of which staysInside lets pass, lead nowhere else.
func TestRandomLinksStayInside(t *testing.T) {
	kept := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2026))
		dir := t.TempDir()
		root := dir + "/a/b/root"
		os.MkdirAll(root+"/x/y/x", 0o755)
		os.MkdirAll(root+"/y", 0o755)
		words := []string{"..", "..", ".", "x", "y", "l1", "l2", "l3", ""}
		for i := range 12 {
			directory := []string{".", "x", "x/y", "y", "x/y/x"}[r.IntN(5)]
			var target []string
			for range 1 + r.IntN(5) {
				target = append(target, words[r.IntN(len(words))])
			}
			if text := strings.Join(target, "/"); staysInside(directory, text) {
				if os.Symlink(text, fmt.Sprintf("%s/%s/l%d", root, directory, i%4)) == nil {
					kept++
				}
			}
		}
		insideOnly(t, root)
	}
	if kept < 500 {
		t.Errorf("only %d links were made", kept)
	}
}

// A directory of a host that another user prepared is not written to.
func TestDownloadIntoDirectoryOfAnother(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	src := t.TempDir()
	write(t, src+"/file", "x", 0o644)
	for name, prepare := range map[string]func(dir, outside string) error{
		"link": func(dir, outside string) error {
			os.Symlink(outside, dir+"/h")
			return os.Lchown(dir+"/h", 47110, 47110)
		},
		"open to all": func(dir, _ string) error {
			os.Mkdir(dir+"/h", 0o777)
			return os.Chmod(dir+"/h", 0o777)
		},
		"of another": func(dir, _ string) error {
			os.Mkdir(dir+"/h", 0o755)
			return os.Chown(dir+"/h", 47110, 47110)
		},
	} {
		dir, outside := t.TempDir(), t.TempDir()
		if err := prepare(dir, outside); err != nil {
			t.Fatal(err)
		}
		s := (&server{}).start(t, "")
		err := download(t, s, Options{}, 0, dir, src+"/file")
		_, there := os.Stat(dir + "/h/file")
		if list, _ := os.ReadDir(outside); err == nil || there == nil || len(list) > 0 || !strings.HasPrefix(err.Error(), "here: ") {
			t.Errorf("%s: error %v, said %q; %d files outside, %v", name, err, &s.said, len(list), there)
		}
	}
}

// flood is a server with more names than anybody can keep.
type flood struct {
	*liar
	name    func(n int) string // of the nth entry in a reply
	entries int                // in a reply
	depth   int                // of directories before there are files
	listed  map[int]bool       // directories, by handle
	total   int                // names so far
}

// reply lists directories of one directory each down to depth, and then files without an end.
func (f *flood) reply(kind byte, body []byte, handles *[]string) []byte {
	id, arg := body[:4], body[4:]
	switch kind {
	case 11: // OPENDIR
		*handles = append(*handles, string(arg[4:4+binary.BigEndian.Uint32(arg)]))
		return appendText(append([]byte{102}, id...), fmt.Sprint(len(*handles)-1))
	case 12: // READDIR
		var number int
		fmt.Sscan(string(arg[4:]), &number)
		path := (*handles)[number]
		n := f.entries
		isDirectory := strings.Count(path, "/") < f.depth
		if isDirectory {
			n = 1
			if f.listed[number] {
				return append(append([]byte{101}, id...), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
			}
		}
		f.listed[number] = true
		mode := uint32(0o100644)
		if isDirectory {
			mode = 0o040755
		}
		b := binary.BigEndian.AppendUint32(append([]byte{104}, id...), uint32(n))
		for range n {
			f.total++
			b = appendText(appendText(b, f.name(f.total)), "")
			b = binary.BigEndian.AppendUint32(b, 1|4)
			b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, 1), mode)
		}
		return b
	}
	return f.liar.reply(kind, body, nil)
}

// Names without an end, long names and deep directories end with an error of that host, and take
// little memory.
func TestDownloadMemory(t *testing.T) {
	long := func(n int) string { return fmt.Sprint(strings.Repeat("x", 240), n) }
	for name, f := range map[string]struct {
		flood flood
		want  string
	}{
		"names of 250 KB": {flood{name: func(n int) string { return fmt.Sprint(strings.Repeat("x", 250_000), n) }, entries: 1}, "names a file of 2"},
		"many names":      {flood{name: func(n int) string { return fmt.Sprint(n) }, entries: 5000}, "more than 1048576 names"},
		"long names":      {flood{name: long, entries: 900}, "the names take more than 24 MiB"},
		"deep, then many": {flood{name: long, entries: 900, depth: 98}, "names in it have more than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := f
			f.flood.liar = &liar{chunk: func(int) []byte { return []byte{'x'} }}
			f.flood.listed = map[int]bool{}
			ours, theirs := net.Pipe()
			t.Cleanup(func() { theirs.Close() })
			f.flood.Conn = ours
			go f.flood.serve(theirs)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			peak := peakOf(t, func() {
				d := Download{Dir: dir, Sources: []string{"/x/directory"}}
				if err := d.Dialogue(ctx, host.Host{Name: "h"}, &f.flood); err == nil {
					t.Error("no error")
				}
			})
			if said := f.flood.said.String(); !strings.Contains(said, f.want) || len(said) > 100_000 {
				t.Errorf("said %q, want %q", said[:min(len(said), 1000)], f.want)
			}
			if peak > 96<<20 { // most of it is what the runtime has not collected yet
				t.Errorf("%d MiB", peak>>20)
			}
		})
	}
}

// peakOf is how much memory work takes at most.
func peakOf(t *testing.T, work func()) (peak uint64) {
	t.Helper()
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapInuse-min(now.HeapInuse, before.HeapInuse))
			}
		}
	})
	work()
	close(stop)
	watching.Wait()
	return peak
}

// serve answers as a server.
func (f *flood) serve(c io.ReadWriter) {
	var handles []string
	for {
		var head [5]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:])-1)
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		reply := f.reply(head[4], body, &handles)
		c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...))
	}
}
