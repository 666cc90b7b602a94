// Package index finds the lines of known_hosts files that belong to a host.
//
// OpenSSH scans every line of every file at least twice per connection
// (hostfile.c:hostkeys_foreach, called for the order of the algorithms and for the check itself),
// and computes one HMAC-SHA1 per hashed line each time. That is nothing for ten hosts and most of
// the cost of a login for ten thousand. Index does that work once for a whole process: plain names
// are in a map, patterns in a short list, and hashed lines are tried once per distinct name.
package index

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
)

// maxFileBytes bounds the text that is read into memory: some six million lines.
const maxFileBytes = 1 << 30

// Entry is one line that matches a name.
type Entry struct {
	File    string
	Line    int // from 1
	Marker  knownhosts.Marker
	Hosts   string // the host field as written
	Text    string // the line as written
	Type    string // of the key, as written
	Key     ssh.PublicKey
	Err     error // reason why there is no Key
	Comment string
	Hashed  bool // the host field is hashed
}

// Where is "file:line".
func (e Entry) Where() string { return fmt.Sprintf("%s:%d", e.File, e.Line) }

// Fingerprint is the key's type and fingerprint.
func (e Entry) Fingerprint() string { return knownhosts.Fingerprint(e.Key) }

// Index answers look-ups over several files, in the order in which ssh reads them: the user's
// first, then the system's. It checks the identity of each file (device, inode, size and
// modification time) before every answer, unless within Lag, and reads changes. All methods may be
// called by any number of goroutines.
type Index struct {
	// Lag is how old the last check of a file may be; 0: every answer checks again. A thousand
	// logins a second would each check six times. Set it before the first answer.
	Lag time.Duration

	files []*source
}

// source is one file and its content so far, or a text about one name that no file holds.
type source struct {
	path   string
	about  string // the name; "": a file
	opened time.Time
	looked atomic.Int64 // when, after opened, in nanoseconds; 0: not yet

	mu    sync.RWMutex
	info  os.FileInfo // identity of the file in table; nil if nothing was read
	table *Table
	err   error // why the file could not be read, except that it is missing
}

// Open makes an index of files, which are read when first needed. A missing file is empty, as for
// ssh; so is one that cannot be read, but Problems reports it.
func Open(files ...string) *Index {
	x := &Index{}
	for _, path := range files {
		x.files = append(x.files, &source{path: path, opened: time.Now(), table: newTable(path, "")})
	}
	return x
}

// With returns an index of the same files and, behind them, of a text with the keys of one name, in
// the form of HostPort. It counts for that name alone; path stands for it in messages.
func (x *Index) With(path, name, text string) *Index {
	added := &source{path: path, about: wildcard.Lower(name), table: newTable(path, text)}
	return &Index{Lag: x.Lag, files: append(slices.Clip(x.files), added)}
}

// Files returns the names that Open was given.
func (x *Index) Files() []string {
	names := make([]string, len(x.files))
	for i, s := range x.files {
		names[i] = s.path
	}
	return names
}

// Tables returns the files as they are now, in their order.
func (x *Index) Tables() []*Table {
	tables := make([]*Table, len(x.files))
	for i, s := range x.files {
		tables[i] = s.current()
	}
	return tables
}

// Lookup returns the readable lines that match host and port in all files. Unlike ssh when it
// connects it does not also try the name without a port; package check does. Pass a name in the
// form of the file, such as "[host]:2222" or a HostKeyAlias, with port 0.
func (x *Index) Lookup(host string, port int) []Entry {
	name := knownhosts.HostPort(host, port)
	if name == "" {
		return nil
	}
	found, _ := x.Matching(name)
	return found
}

// Matching returns the lines that match a name in the form of the file: those with a key, as Lookup
// does, and those whose key cannot be decoded, because its type is unknown here or it is damaged.
// They have Err instead of a Key.
func (x *Index) Matching(name string) (found, undecoded []Entry) {
	name = knownhosts.HostPort(name, 0)
	for _, s := range x.files {
		if s.about != "" && s.about != name {
			continue
		}
		t := s.recent(x.Lag)
		for _, index := range t.Find(name) {
			if e := t.entry(index); e.Err == nil {
				found = append(found, e)
			} else {
				undecoded = append(undecoded, e)
			}
		}
	}
	return found, undecoded
}

// Exactly returns the lines that ssh-keygen -F finds for a name: only in hashed names does case
// matter. ssh itself asks for names in lower case.
func (x *Index) Exactly(name string) []Entry {
	found := x.Lookup(name, 0)
	if name == wildcard.Lower(name) {
		return found
	}
	found = slices.DeleteFunc(found, func(e Entry) bool { return e.Hashed })
	for _, s := range x.files {
		t := s.current()
		for _, index := range t.hashed {
			if e := t.entry(index); e.Err == nil && t.lines[index].HashOf(name) {
				found = append(found, e)
			}
		}
	}
	files := x.Files()
	slices.SortStableFunc(found, func(a, b Entry) int {
		return cmp.Or(slices.Index(files, a.File)-slices.Index(files, b.File), a.Line-b.Line)
	})
	return found
}

// Warm tries the hashed lines for many names at once, on all processors. It only saves time: a
// fleet that is known beforehand costs one pass instead of one per name. The names are in the form
// of HostPort.
func (x *Index) Warm(ctx context.Context, names []string) {
	lowered := make([]string, len(names))
	for i, name := range names {
		lowered[i] = wildcard.Lower(name)
	}
	for _, s := range x.files {
		s.current().Warm(ctx, lowered)
	}
}

// Unreadable returns the unusable lines with the reasons. It decodes every key, which look-ups do
// not.
func (x *Index) Unreadable() []BadLine {
	var bad []BadLine
	for _, s := range x.files {
		bad = append(bad, s.current().Unreadable()...)
	}
	return bad
}

// Problems returns the reasons why files could not be read at all.
func (x *Index) Problems() []error {
	var problems []error
	for _, s := range x.files {
		s.current()
		s.mu.RLock()
		if s.err != nil {
			problems = append(problems, s.err)
		}
		s.mu.RUnlock()
	}
	return problems
}

// entry decodes the line at index.
func (t *Table) entry(index int32) Entry {
	t.mu.RLock()
	l := t.lines[index]
	t.mu.RUnlock()

	key, comment, err := l.Key()
	return Entry{File: t.Path, Line: l.Number, Marker: l.Marker, Hosts: l.Hosts, Text: l.Text, Type: l.Type(), Key: key, Err: err,
		Comment: comment, Hashed: l.Hashed()}
}

// Expire makes the next answer check the files, whatever the Lag.
func (x *Index) Expire() {
	for _, s := range x.files {
		s.looked.Store(0)
	}
}

// recent returns the table of the file as it was within lag, or is now.
func (s *source) recent(lag time.Duration) *Table {
	if last := s.looked.Load(); last == 0 || time.Since(s.opened)-time.Duration(last) >= lag {
		return s.current()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table
}

// current returns the table of the file as it is now.
func (s *source) current() *Table {
	if s.about != "" {
		return s.table
	}
	now := time.Since(s.opened)
	defer s.looked.Store(int64(now) + 1) // when the table is there
	info, err := os.Stat(s.path)
	s.mu.RLock()
	t, fresh := s.table, s.isCurrent(info, err)
	s.mu.RUnlock()
	if fresh {
		return t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if info, err = os.Stat(s.path); !s.isCurrent(info, err) { // nobody else did it meanwhile
		s.refresh()
	}
	return s.table
}

// isCurrent reports whether the table holds the file that stat found.
func (s *source) isCurrent(info os.FileInfo, err error) bool {
	if err != nil {
		return s.info == nil && s.err == nil && errors.Is(err, fs.ErrNotExist)
	}
	return s.info != nil && os.SameFile(info, s.info) && info.Size() == s.info.Size() &&
		info.ModTime().Equal(s.info.ModTime())
}

// refresh reads the file, or its new part. An error leaves an empty table: a key that can no longer
// be read is no longer known.
func (s *source) refresh() {
	s.err = s.read()
	if s.err == nil {
		return
	}
	s.table, s.info = newTable(s.path, ""), nil
	if errors.Is(s.err, fs.ErrNotExist) {
		s.err = nil
	}
}

func (s *source) read() error {
	f, err := openRegular(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if s.hasGrown(info) && sameText(f, s.table.text) {
		return s.readRest(f, info)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	text, err := readText(f, info.Size())
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	s.table, s.info = newTable(s.path, text), info
	return nil
}

// readRest extends the table by the appended text.
func (s *source) readRest(f *os.File, info os.FileInfo) error {
	text, err := readText(f, info.Size()-s.info.Size())
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	s.table.extend(text)
	s.info = info
	return nil
}

// hasGrown reports whether the file may be the table's text plus more lines.
func (s *source) hasGrown(info os.FileInfo) bool {
	return s.info != nil && os.SameFile(info, s.info) && info.Size() > s.info.Size() && s.table.endsWithNewline()
}

func (t *Table) endsWithNewline() bool {
	last := t.text[len(t.text)-1]
	return last != "" && last[len(last)-1] == '\n'
}

// sameText reports whether r starts with the pieces of text. Reading and comparing two megabytes
// takes 0.3 ms, indexing them ten times that.
func sameText(r io.Reader, pieces []string) bool {
	buf := make([]byte, 64<<10)
	for _, piece := range pieces {
		for piece != "" {
			n := min(len(buf), len(piece))
			if _, err := io.ReadFull(r, buf[:n]); err != nil || string(buf[:n]) != piece[:n] {
				return false
			}
			piece = piece[n:]
		}
	}
	return true
}

// readText reads size bytes, or fewer if there are fewer.
func readText(r io.Reader, size int64) (string, error) {
	if size > maxFileBytes {
		return "", fmt.Errorf("%d bytes are more than a known_hosts file can have", size)
	}
	var buf bytes.Buffer
	buf.Grow(int(size) + bytes.MinRead)
	if _, err := buf.ReadFrom(io.LimitReader(r, size)); err != nil {
		return "", err
	}
	return buf.String(), nil
}

// openRegular opens a file that can be read to its end and does not block: regular files and the
// null device.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && path != os.DevNull {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}

// Hosts lists the hosts of all files, each line's first name as people type it (name, name:port,
// [address]:port), each once. Hashed names cannot be read back; they are counted. Patterns, revoked
// keys and authorities name no host.
func (x *Index) Hosts() (names []string, hashed int) {
	seen := map[string]bool{}
	for _, t := range x.Tables() {
		for _, l := range t.Lines() {
			switch {
			case l.Marker != knownhosts.MarkerNone, l.Pattern:
				continue
			case l.Hashed():
				hashed++
				continue
			}
			if name := typedName(l.Hosts); !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, hashed
}

// typedName returns the first name of a line: [name]:port loses its brackets unless the name is an
// address with colons.
func typedName(hosts string) string {
	name, _, _ := strings.Cut(hosts, ",")
	host, port, err := net.SplitHostPort(name)
	if err != nil || !strings.HasPrefix(name, "[") {
		return name
	}
	return net.JoinHostPort(host, port)
}
