package copy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sftp"
)

// plan lists the changes that a copy would make, in the order of names, so that hosts with the same
// changes have the same list.
type plan struct {
	mu    sync.Mutex
	lines []intent
}

// intent is a change that would be made.
type intent struct{ verb, name, detail string }

// would records a change in a dry run.
func (s *side) would(verb, name string, detail ...string) {
	if !s.Dry {
		return
	}
	s.plan.mu.Lock()
	defer s.plan.mu.Unlock()
	s.plan.lines = append(s.plan.lines, intent{verb, name, strings.Join(detail, "")})
}

// show prints the changes.
func (s *side) show() {
	slices.SortFunc(s.plan.lines, func(a, b intent) int { return strings.Compare(a.name, b.name) })
	for _, line := range slices.Compact(s.plan.lines) {
		text := termsafe.Line("would "+line.verb+" "+line.name) + "\n"
		for more := range strings.Lines(line.detail) {
			text += "  " + termsafe.Line(strings.ReplaceAll(strings.TrimSuffix(more, "\n"), "\x1b", `\x1b`)) + "\n" // which may be all that differs
		}
		s.ch.Output(fleet.Stdout, []byte(text))
	}
}

// forecast records the directories, files and links that a host would get.
func (p *put) forecast(files []*placed, links []*link) {
	for _, to := range p.directories {
		if p.fresh[to.name] {
			p.add(func(t *tally) { t.remade++ })
			p.would("make directory", to.name)
		} else if mode := to.mode(); !to.named && to.was.Mode&0o7777 != mode {
			p.would(fmt.Sprintf("set mode %04o of directory", mode), to.name)
		}
	}
	each(&p.side, p.atOnce(), files, func(to *placed) {
		p.add(func(t *tally) { t.copied++; t.bytes += to.size })
		size := ", " + unit.Bytes(to.size).String()
		if !to.exists {
			p.would("create", to.name+size)
			return
		}
		p.would("replace", to.name+size, p.difference(to))
	})
	for _, l := range links {
		p.add(func(t *tally) { t.copied++ })
		p.would("link", l.name+" -> "+l.target)
	}
}

// foresee records a directory that would be made here, and refuses one in the place of a file.
func (g *get) foresee(f *found) error {
	info, err := g.root.Lstat(f.local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		g.would("make directory", f.local)
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: f.local, Err: fs.ErrExist}
	}
	return nil
}

// forecast records the files that would come here.
func (g *get) forecast(files []*found) {
	for _, f := range files {
		size := int64(min(f.attrs.Size, math.MaxInt64))
		g.add(func(t *tally) { t.copied++; t.bytes += size })
		text := f.local + ", " + unit.Bytes(size).String()
		info, err := g.root.Lstat(f.local)
		switch {
		case err != nil:
			g.would("create", text)
		case !info.Mode().IsRegular() || info.Size() > smallFile:
			g.would("replace", text)
		default:
			old, _ := g.root.ReadFile(f.local)
			g.would("replace", text, differences(bytes.NewReader(old), g.small(f.remote, f.attrs.Size)))
		}
	}
}

// difference returns how a small text file on the host differs from the new one here.
func (p *put) difference(to *placed) string {
	if !to.was.IsRegular() {
		return ""
	}
	r, done, err := to.open()
	if err != nil {
		return ""
	}
	defer done()
	return differences(p.small(to.name, to.was.Size), io.NewSectionReader(r, 0, to.size))
}

// small returns a small file of the host, nil if it is large or cannot be read.
func (s *side) small(name string, size uint64) io.Reader {
	if size > smallFile || size == 0 && s.received { // which may be unknown
		return nil
	}
	f, err := s.client.Open(name, sftp.Read, 0)
	if err != nil {
		return nil
	}
	defer func() { f.Close().Wait() }()
	var text bytes.Buffer
	if size > 0 && s.read(f, 0, int64(size), func(p []byte, _ int64) error { text.Write(p); return nil }) != nil {
		return nil
	}
	return &text
}

// maxDifference bounds the shown differences of a file, in bytes.
const maxDifference = 8 << 10

// differences returns how two small texts differ, in the form of diff -u; "" for other files.
func differences(from, to io.Reader) string {
	var texts [2][]byte
	for i, r := range []io.Reader{from, to} {
		if r == nil {
			return ""
		}
		text, err := io.ReadAll(io.LimitReader(r, smallFile+1))
		if err != nil || len(text) > smallFile || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
			return ""
		}
		texts[i] = text
	}
	_, lines, _ := strings.Cut(string(diff.Diff("", texts[0], "", texts[1])), "+++ \n")
	if len(lines) > maxDifference {
		lines = strings.ToValidUTF8(lines[:maxDifference], "") + "\n..."
	}
	return lines
}
