// Package copy copies files to hosts and from them over SFTP, as Dialogues of a fleet run: one
// connection a host, many requests at once. A file is written next to its place under a temporary
// name, compared with the original by the host's cksum(1), and put into place in one step; equal
// files are left alone. A host is not trusted: names and links stay inside the directory, and sizes
// and memory inside limits.
package copy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/fanout/expand"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sftp"
)

const (
	// leastAtOnce is how many small files of one host are copied at the same time.
	leastAtOnce = 64
	// maxRequests is how many requests for one large file are in flight.
	maxRequests = 16
	// large is the size of files that are copied one at a time, and whose parts are worth keeping
	// for the next run.
	large = 1 << 20
	// huge is the size that is worth a command on the host.
	huge = 16 << 20
	// batch is how many files are compared at once.
	batch = 1024
	// maxDepth bounds directories in directories.
	maxDepth = 100
	// maxSaid is how many failed files of a host are named, and as many skipped ones.
	maxSaid = 20
)

// Options are the same for both directions.
type Options struct {
	Limit    *Limiter       // nil = as fast as it goes
	NoVerify bool           // trust sizes, do not compare checksums
	Compare  bool           // compare by checksums, not by size and time
	Hosts    int            // that copy at the same time, as far as is known; 0 = unknown
	Scp      *Scp           // nil = as copy and fetch do it
	Naming   Naming         // nil = expand.Name
	Dry      bool           // nothing is changed, here or on the host; the changes are listed
	Exclude  wildcard.Paths // names that are left out, and all below them, as seen in the directory that they go into
}

// Naming replaces the tokens in a name of a file.
type Naming func(text string, h host.Host) string

// of returns the name for a host.
func (n Naming) of(text string, h host.Host) string {
	if n == nil || !expand.Varies(text) {
		return expand.Name(text, h.Name)
	}
	return n(text, h)
}

// Scp asks for the behavior of scp(1): files are overwritten in place, in any case, links are
// followed, and a directory is an error unless Recursive.
type Scp struct {
	Recursive bool
	Preserve  bool // modes and times; without it the modes of new files, subject to the umask
}

// tally counts the outcomes of one host's files.
type tally struct {
	mu        sync.Mutex
	copied    int
	bytes     int64
	identical int
	altered   int // of the identical ones, those that got another mode, owner or time
	deleted   int
	remade    int // directories that were made, or got another mode
	failed    int
	skipped   int
	inPlace   int    // files that were overwritten in place
	bare      [2]int // files and directories whose mode and time the host does not set
	bareFor   string // why it does not, of the first
	reread    int    // files that were compared by reading them through SFTP
	unable    string // why the host's cksum cannot be asked, "" as long as it can
	fatal     error  // why nothing more is tried
}

func (t *tally) add(change func(*tally)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t)
}

func (t *tally) String() string {
	text := fmt.Sprintf("%s copied", unit.Count(t.copied, "file"))
	if t.copied > 0 {
		text += ", " + unit.Bytes(t.bytes).String()
	}
	if t.identical > 0 {
		text += fmt.Sprintf("; %d identical", t.identical)
	}
	if t.altered > 0 {
		text += fmt.Sprintf(" (%d with a new mode, owner or time)", t.altered)
	}
	if t.deleted > 0 {
		text += fmt.Sprintf("; %d deleted", t.deleted)
	}
	if t.skipped > 0 {
		text += fmt.Sprintf("; %d skipped", t.skipped)
	}
	if t.failed > 0 {
		text += fmt.Sprintf("; %d failed", t.failed)
	}
	if t.inPlace > 0 {
		text += fmt.Sprintf("; %s written in place, not in one step", unit.Count(t.inPlace, "file"))
	}
	for i, kind := range []string{"file", "directory"} {
		if t.bare[i] > 0 {
			text += fmt.Sprintf("; mode and time of %s not set: %s", unit.Count(t.bare[i], kind), termsafe.Line(t.bareFor))
		}
	}
	return text
}

// failures returns how many files have failed by now.
func (t *tally) failures() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// dressed records the outcome of setting modes and times: a server's refusal is noted, and the
// content is there all the same.
func (t *tally) dressed(kind fs.FileMode, err error) error {
	if !isStatus(err) {
		return err
	}
	t.add(func(t *tally) { t.bare[min(1, kind)]++; t.bareFor = cmp.Or(t.bareFor, err.Error()) })
	return nil
}

// side holds the needs of both directions for one host.
type side struct {
	Options
	tally
	ctx    context.Context
	host   string
	client *sftp.Client
	ch     fleet.Channel
	last   context.Context // ends a little after ctx: until then the host can be cleaned up
	home   func() string   // where SFTP begins, "" if the host does not say
	left   leftovers
	beside lanes
	early  early
	note   string // about --then
	plan   plan   // of a dry run

	received bool // files came from the host
}

// connect begins SFTP with a host.
func (s *side) connect() (closing func(), err error) {
	switch s.client, err = sftp.NewClient(s.ch, s.inFlight()); {
	case err == sftp.ErrNoServer:
		return nil, fmt.Errorf("sftp: %w; %s", err, s.instead())
	case err != nil:
		return nil, fmt.Errorf("sftp: %w", err)
	}
	var end context.CancelFunc
	s.last, end = context.WithCancel(context.WithoutCancel(s.ctx))
	stop := sched.After(s.ctx, func() time.Duration { return courtesy }, func() { end(); s.ch.Close() })
	if s.Dry {
		s.client.Freeze()
	}
	home := s.client.RealPath(".")
	s.home = sync.OnceValue(func() string { name, _ := home.Wait(); return name })
	return func() { stop(); end(); s.early.close(); s.beside.close(); s.client.Close() }, nil
}

// instead names the possible reason why the host offers no SFTP: its banner, or its sshd_config.
func (s *side) instead() string {
	if banner := s.ch.Banner(); banner != "" {
		return fmt.Sprintf("its banner says %q", banner)
	}
	return "see Subsystem in its sshd_config"
}

// remote returns SFTP's name for a name on the host: it begins in the home directory.
func (s *side) remote(name string) (string, error) {
	switch {
	case name == "" || name == "~":
		return ".", nil
	case !strings.HasPrefix(name, "~"):
		return name, nil
	}
	user, rest, below := strings.Cut(name, "/")
	if user == "~" {
		return cmp.Or(strings.TrimLeft(rest, "/"), "./"), nil
	}
	home, err := s.client.Expand(user)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return "", errors.New("the host's SFTP server does not report where " + user + " is; write the whole name, from / on")
	case err == nil && below:
		home += "/" + rest
	}
	return home, err
}

// say prints a line about a file. Names and the host's words are made safe.
func (s *side) say(name, format string, args ...any) {
	line := termsafe.Line(name+": "+fmt.Sprintf(format, args...)) + "\n"
	s.ch.Output(fleet.Stderr, []byte(line))
}

// skip counts a skipped file.
func (s *side) skip(name, format string, args ...any) {
	quiet := false
	s.add(func(t *tally) { t.skipped++; quiet = t.skipped > maxSaid })
	if !quiet {
		s.say(name, format, args...)
	}
}

// fail counts a file that was not copied; a lost connection or an end of the run is reported once
// and by others.
func (s *side) fail(name string, err error) {
	if s.isOver(err) {
		s.add(func(t *tally) { t.fatal = err })
		return
	}
	quiet := false
	s.add(func(t *tally) { t.failed++; quiet = t.failed > maxSaid })
	if quiet {
		return
	}
	s.say(name, "%s", plain(err))
}

// plain returns an error for people: SFTP has one number for all other errors.
func plain(err error) error {
	if isFailure(err) {
		return errors.New("the host refuses without a reason; the file system may be read-only or the quota used up")
	}
	return err
}

// isOver reports whether nothing more can be done with the host.
func (s *side) isOver(err error) bool {
	return s.ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && !isStatus(err) || errors.Is(err, sftp.ErrProtocol)
}

// isFailure reports whether a server refuses without a reason.
func isFailure(err error) bool {
	status, ok := errors.AsType[*sftp.StatusError](err)
	return ok && status.Code == sftp.Failure
}

func isStatus(err error) bool {
	_, ok := errors.AsType[*sftp.StatusError](err)
	return ok
}

// verdict returns the outcome of the host.
func (s *side) verdict() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case s.fatal != nil:
		return s.fatal
	}
	text := s.String()
	if s.Dry {
		s.show()
		text = "nothing is changed; without --dry-run: " + text
	}
	text += s.note
	switch {
	case s.reread > 0 && s.unable != "":
		text += fmt.Sprintf("; %s verified by reading them back: %s", unit.Count(s.reread, "file"), s.unable)
	case s.unable != "" && !s.NoVerify && s.copied > 0 && s.received:
		text += "; not verified: " + s.unable
	}
	for _, more := range []struct {
		n    int
		what string
	}{{s.skipped, "skipped"}, {s.failed, "failed"}} {
		if n := more.n - maxSaid; n > 0 && (s.received || more.what == "failed") {
			s.ch.Output(fleet.Stderr, fmt.Appendf(nil, "... and %s more %s\n", unit.Count(n, "file"), more.what))
		}
	}
	if s.failed > 0 {
		return errors.New(text)
	}
	s.ch.Output(fleet.Stdout, []byte(text+"\n"))
	return nil
}

// over reports whether work should stop.
func (s *side) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fatal != nil || s.ctx.Err() != nil
}

// each calls work for all of a list, at most n at a time, until it is over.
func each[T any](s *side, n int, list []T, work func(T)) {
	sched.Do(n, len(list), func(i int) {
		if !s.over() {
			work(list[i])
		}
	})
}

// moved moves files, many small ones at a time and large ones one by one.
func moved[T any](s *side, files []T, size func(T) int64, move func(T)) {
	small := func(f T) bool { return size(f) < large }
	each(s, s.atOnce(), slices.DeleteFunc(slices.Clone(files), func(f T) bool { return !small(f) }), move)
	each(s, 1, slices.DeleteFunc(slices.Clone(files), small), move)
}

// Limiter bounds the bytes a second of all hosts together, from the first byte on: a piece passes
// when its time is over, and none is more than a tenth of a second's.
type Limiter struct {
	rate  float64
	turns sched.Turns
}

// NewLimiter lets rate bytes a second pass.
func NewLimiter(rate int64) *Limiter { return &Limiter{rate: float64(rate)} }

// piece returns how many of n bytes may pass at once.
func (l *Limiter) piece(n int) int {
	if l == nil {
		return n
	}
	return min(n, max(1, int(l.rate/10)))
}

// wait returns when n more bytes may pass.
func (l *Limiter) wait(ctx context.Context, n int) {
	if l == nil {
		return
	}
	takes := time.Duration(float64(n) / l.rate * float64(time.Second))
	sched.Until(ctx, l.turns.Take(takes).Add(takes))
}

// trickle reads no more at once than may pass.
type trickle struct {
	io.Reader
	*Limiter
}

// Read reads a piece.
func (t trickle) Read(p []byte) (int, error) { return t.Reader.Read(p[:t.piece(len(p))]) }

// limited is a file that is read at the common limit of all hosts.
type limited struct {
	io.ReaderAt
	*side
}

// ReadAt waits until the bytes that it has read may pass.
func (l limited) ReadAt(p []byte, offset int64) (int, error) {
	n, err := l.ReaderAt.ReadAt(p, offset)
	l.Limit.wait(l.ctx, n)
	return n, err
}

// chunk is a buffer for one read or write of a server.
type chunk [sftp.MaxChunk]byte

var buffers = sync.Pool{New: func() any { return new(chunk) }}
