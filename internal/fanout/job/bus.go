// Package job runs a command on many hosts by launchers on other machines. A job is journals, one
// for each batch of its hosts, which a hub keeps; a launcher is a process that takes batches and
// appends to their journals, and a client is an Executor that reads them.
//
// The hub delivers, and is trusted with nothing else: jobs are signed, and launchers verify them.
// It is behind the interface Bus.
package job

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/wildcard"
)

// Subjects are names with dots between their parts: kind, pool, job, number. A part of a pattern
// may be *, and its last one >, which is one or more parts.
const (
	jobKind   = "job"   // parts of the signed job of a pool: job.POOL.JOB.N
	stopKind  = "stop"  // somebody stops it: stop.POOL.JOB.N, a stopNumber
	batchKind = "batch" // its batch may start: batch.POOL.JOB.K
	eventKind = "event" // the journal of the batch: event.POOL.JOB.K
	aliveKind = "alive" // a launcher lives: alive.POOL.LAUNCHER
)

// Entry is a message that the hub keeps.
type Entry struct {
	Subject string
	Seq     uint64 // in the order of the hub, over all subjects of the kind
	Time    time.Time
	Header  map[string]string
	Data    []byte
}

// Errors of a Bus.
var (
	// ErrConflict says that an entry was appended to the subject by another writer.
	ErrConflict = errors.New("another launcher has written to the batch")
	// ErrNoEntry says that a subject has no entry.
	ErrNoEntry = errors.New("there is no such entry")
	// ErrFull says that the hub keeps nothing more at present. It is for the caller to try again.
	ErrFull = errors.New("the hub is full")
	// ErrAway says that the hub had not answered when ctx ended.
	ErrAway = errors.New("the hub does not answer")
	// ErrRefused says that the credential does not permit it, or is not valid.
	ErrRefused = errors.New("the hub does not permit it")
)

// Bus is a hub as clients and launchers see it. Methods return when the hub has answered, or ctx
// has ended; while the hub is away they wait, so ctx bounds them.
type Bus interface {
	// Append keeps an entry, if after is the sequence of the last one of its subject, 0 for none;
	// otherwise the error is ErrConflict. An entry with an id that was kept in the last minutes is
	// not kept twice; its sequence is returned again.
	Append(ctx context.Context, e Entry, after uint64, id string) (seq uint64, err error)
	// Put keeps an entry, without a condition.
	Put(ctx context.Context, e Entry) error
	// Last returns the last entry of a subject, or ErrNoEntry.
	Last(ctx context.Context, subject string) (Entry, error)
	// Follow yields the entries whose subjects match a pattern of one kind, in order, each once,
	// and goes on until ctx ends, with its cause as the last error.
	Follow(ctx context.Context, pattern string, o FollowOptions) iter.Seq2[Entry, error]
	// Take waits for a batch of a pool that somebody has put. The hub gives it to another launcher
	// when it was neither done nor reported as working for a lease.
	Take(ctx context.Context, pool string, lease time.Duration) (Work, error)
	// Status describes the hub.
	Status(ctx context.Context) (Status, error)
	// Remove removes all entries of a job.
	Remove(ctx context.Context, job string) error
	// Close ends the connection.
	Close()
}

// FollowOptions are those of Bus.Follow.
type FollowOptions struct {
	From    uint64 // sequence of the first one
	Until   bool   // it ends when everything that was kept at the call has come
	Headers bool   // Data is left out
	Last    bool   // of those that are kept, only the last one of each subject; From is 0 then
}

// Work is a batch that a launcher has taken.
type Work interface {
	// Subject names the batch.
	Subject() string
	// Working asks for another lease.
	Working(ctx context.Context) error
	// Done ends it: no launcher gets it again.
	Done(ctx context.Context) error
	// Back gives it to another launcher at once.
	Back() error
}

// Status describes a hub.
type Status struct {
	Version string
	Streams []Stream
	Waiting map[string]int // batches that no launcher has taken, by pool
	Taken   map[string]int // batches that launchers work on, by pool
}

// Stream is what a hub keeps of some kinds of entries.
type Stream struct {
	Name     string    `json:"name"`
	Messages uint64    `json:"messages"`
	Bytes    uint64    `json:"bytes"`
	Limit    int64     `json:"limit_bytes"` // 0 = none
	Oldest   time.Time `json:"oldest,omitzero"`
}

// Alive describes a launcher that lives: the data of its alive entry.
type Alive struct {
	Instance string    `json:"instance"` // name and a random part
	Host     string    `json:"host"`     // its machine
	Version  string    `json:"version"`
	Since    time.Time `json:"since"`
	Running  int       `json:"running"` // hosts
}

// Stop is the data of a stop entry.
type Stop struct {
	By  string `json:"by"`            // who stops it
	Why string `json:"why,omitempty"` // the message of hosts that do not start
}

// The numbers of stop entries, each of which a hub keeps once.
const (
	stopStarting = iota // no host starts any more
	stopRunning         // and commands that run are ended
)

// AliveAge is how long an alive entry is kept.
const AliveAge = 3 * time.Minute

var name = wildcard.Regexp(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckName refuses a name of a pool or launcher that cannot be a part of a subject.
func CheckName(kind, text string) error {
	if !name().MatchString(text) {
		return fault.Usage("use letters, digits, - and _, at most 64", "%q is not a name of a %s", text, kind)
	}
	return nil
}

// Token returns the ID of a job as a part of a subject.
func Token(id string) string { return strings.ReplaceAll(id, ".", "_") }

// ID returns the ID of a job by a part of a subject.
func ID(token string) string { return strings.ReplaceAll(token, "_", ".") }

func subject(kind, pool, job string, number int) string {
	return strings.Join([]string{kind, pool, Token(job), strconv.Itoa(number)}, ".")
}

// allOf returns the pattern of all entries of a job.
func allOf(kind, job string) string {
	return strings.Join([]string{kind, "*", Token(job), "*"}, ".")
}

func aliveSubject(pool, launcher string) string {
	return strings.Join([]string{aliveKind, pool, launcher}, ".")
}

// parts returns the parts of a subject of a batch, or of a part of a job, none of any other.
func parts(subject string) (pool, job string, number int, ok bool) {
	if p := strings.Split(subject, "."); len(p) == 4 {
		if n, err := strconv.ParseUint(p[3], 10, 31); err == nil {
			return p[1], ID(p[2]), int(n), true
		}
	}
	return "", "", 0, false
}
