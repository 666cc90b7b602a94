// Package hub is the hub of jobs on NATS JetStream: a server in this process, and job.Bus over a
// connection to one. It alone knows NATS.
package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
	"sshpace/internal/fanout/job"
)

// NATS is the hub that sshpace has.
type NATS struct{}

var _ job.Hub = NATS{}

// bus is a connection to a hub. It connects again without end.
type bus struct {
	nc *nats.Conn
	js jetstream.JetStream

	takers sync.Map // consumers of batches, by pool

	mu    sync.Mutex
	epoch chan struct{}                        // closed by the next connection
	tries map[*attempt]context.CancelCauseFunc // requests that wait for an answer
}

type attempt struct{ about string }

var _ job.Bus = (*bus)(nil)

// A request is asked again after attemptTime without an answer, and after at most longestPause
// while the hub is away.
const (
	attemptTime  = 5 * time.Second
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// do asks the hub until it has answered, or ctx ends. about is a part of the subjects that it asks.
func (b *bus) do(ctx context.Context, about string, ask func(context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := b.try(ctx, about, ask)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", job.ErrAway, context.Cause(ctx))
		case b.nc.IsClosed():
			return fmt.Errorf("%w: the connection was closed", job.ErrAway)
		case !away(err):
			return answer(err)
		}
		sched.For(ctx, pause)
	}
}

// try asks once. The server says that something is not permitted apart from the request.
func (b *bus) try(ctx context.Context, about string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	this := &attempt{about}
	b.mu.Lock()
	b.tries[this] = refuse
	b.mu.Unlock()
	err := ask(ctx)
	b.mu.Lock()
	delete(b.tries, this)
	b.mu.Unlock()
	if why := context.Cause(ctx); err != nil && errors.Is(why, job.ErrRefused) {
		return why
	}
	return err
}

// refused ends the requests that the server does not permit.
func (b *bus) refused(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a, refuse := range b.tries {
		if strings.Contains(err.Error(), a.about) {
			refuse(fmt.Errorf("%w: %s", job.ErrRefused, a.about))
		}
	}
}

// connected is called after each connection. An answer to what was asked over the last one will not
// come.
func (b *bus) connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, end := range b.tries {
		end(errMissed)
	}
	close(b.epoch)
	b.epoch = make(chan struct{})
}

// reconnected is closed by the next connection.
func (b *bus) reconnected() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epoch
}

// Codes of the server (its errors.json).
const (
	codeInsufficientResources = 10023
	codeMemory                = 10028
	codeStorage               = 10047
	codeStoreFailed           = 10077

	codeUnavailable = 503 // by the kind of the error
)

// lasting are errors that asking again does not change, besides those that the server answers with.
var lasting = []error{
	job.ErrNoEntry, job.ErrRefused, errAnswer, nats.ErrMaxPayload, nats.ErrBadSubject, jetstream.ErrInvalidSubject, jetstream.ErrInvalidConsumerName,
	jetstream.ErrMaxBytesExceeded, jetstream.ErrMsgAlreadyAckd,
}

// errAnswer says that the hub has answered something that cannot be.
var errAnswer = errors.New("the hub answers what cannot be")

// away reports whether an error says that the hub has not answered, and may do so later.
func away(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return !slices.ContainsFunc(lasting, func(kind error) bool { return errors.Is(err, kind) })
	}
	switch api.ErrorCode {
	case codeInsufficientResources, codeStoreFailed:
		return false
	case jetstream.JSErrCodeConsumerNotFound, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return true
	}
	return api.Code == codeUnavailable
}

// answer returns an error of the server as one of a Bus.
func answer(err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		if errors.Is(err, nats.ErrMaxPayload) {
			return fault.WithHint(errors.New("the entry is larger than the hub accepts"), "the limit of a hub is max_payload, a mebibyte by default")
		}
		return err
	}
	switch api.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return job.ErrConflict
	case codeInsufficientResources, codeMemory, codeStorage, codeStoreFailed:
		if !strings.Contains(api.Description, "per subject") {
			return fmt.Errorf("%w (%s)", job.ErrFull, api.Description)
		}
	}
	return err
}

// kept reports whether an error says that the subject has an entry already.
func kept(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "per subject")
}

// publish keeps an entry.
func (b *bus) publish(ctx context.Context, e job.Entry, o ...jetstream.PublishOpt) (seq uint64, err error) {
	o = append(o, jetstream.WithRetryAttempts(0))
	err = b.do(ctx, e.Subject, func(ctx context.Context) error {
		m := nats.NewMsg(e.Subject)
		m.Data = e.Data
		for name, value := range e.Header {
			m.Header[name] = []string{value}
		}
		ack, err := b.js.PublishMsg(ctx, m, o...)
		if err == nil {
			seq = ack.Sequence
		}
		return err
	})
	return seq, err
}

func (b *bus) Append(ctx context.Context, e job.Entry, after uint64, id string) (uint64, error) {
	seq, err := b.publish(ctx, e, jetstream.WithMsgID(id), jetstream.WithExpectLastSequencePerSubject(after))
	if !errors.Is(err, job.ErrConflict) {
		return seq, err
	}
	// The hub may have kept it long ago, its answer was lost, and others have written since.
	for kept, followErr := range b.Follow(ctx, e.Subject, job.FollowOptions{From: after + 1, Until: true, Headers: true}) {
		if followErr != nil {
			return 0, followErr
		}
		if kept.Header[jetstream.MsgIDHeader] == id {
			return kept.Seq, nil
		}
	}
	return 0, err
}

func (b *bus) Put(ctx context.Context, e job.Entry) error {
	if _, err := b.publish(ctx, e); !kept(err) {
		return err
	}
	return nil
}

func (b *bus) Last(ctx context.Context, subject string) (e job.Entry, err error) {
	ask := "$JS.API.DIRECT.GET." + stream(subject) + "." + subject
	err = b.do(ctx, ask, func(ctx context.Context) error {
		m, err := b.nc.RequestWithContext(ctx, ask, nil)
		if err != nil {
			return err
		}
		if m.Header.Get("Status") != "" {
			return job.ErrNoEntry
		}
		if e, err = direct(m); err != nil {
			err = fmt.Errorf("%w: %w", errAnswer, err)
		}
		return err
	})
	return e, err
}

// direct reads the answer to a direct request.
func direct(m *nats.Msg) (e job.Entry, err error) {
	e = job.Entry{Subject: m.Header.Get(jetstream.SubjectHeader), Header: header(m.Header), Data: m.Data}
	if e.Seq, err = strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64); err == nil {
		e.Time, err = time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	}
	return e, err
}

func header(h nats.Header) map[string]string {
	all := make(map[string]string, len(h))
	for name := range h {
		all[name] = h.Get(name)
	}
	return all
}

func (b *bus) Remove(ctx context.Context, id string) error {
	id = job.Token(id)
	for _, pattern := range []string{"batch.*." + id + ".*", "job.*." + id + ".*", "stop.*." + id + ".*", "event.*." + id + ".*"} {
		if err := b.do(ctx, "STREAM.PURGE."+stream(pattern), func(ctx context.Context) error {
			s, err := b.js.Stream(ctx, stream(pattern))
			if err == nil {
				err = s.Purge(ctx, jetstream.WithPurgeSubject(pattern))
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bus) Status(ctx context.Context) (s job.Status, err error) {
	s = job.Status{Version: b.nc.ConnectedServerVersion(), Waiting: map[string]int{}, Taken: map[string]int{}}
	for _, name := range []string{jobs, batches, events, alive} {
		entry := job.Stream{Name: name}
		if err = b.do(ctx, name, func(ctx context.Context) error {
			var o []jetstream.StreamInfoOpt
			if name == batches {
				o = append(o, jetstream.WithSubjectFilter("batch.>"))
			}
			stream, err := b.js.Stream(ctx, name)
			if err != nil {
				return err
			}
			info, err := stream.Info(ctx, o...)
			if err != nil {
				return err
			}
			entry.Messages, entry.Bytes, entry.Limit = info.State.Msgs, info.State.Bytes, max(info.Config.MaxBytes, 0)
			if entry.Messages > 0 {
				entry.Oldest = info.State.FirstTime
			}
			if name != batches {
				return nil
			}
			clear(s.Waiting)
			clear(s.Taken)
			for subject := range info.State.Subjects {
				s.Waiting[strings.Split(subject, ".")[1]]++
			}
			return taken(ctx, stream, &s)
		}); err != nil {
			return s, err
		}
		s.Streams = append(s.Streams, entry)
	}
	return s, nil
}

func (b *bus) Close() { b.nc.Close() }

// taken moves batches from Waiting to Taken, by what the consumers of pools say.
func taken(ctx context.Context, stream jetstream.Stream, s *job.Status) error {
	consumers := stream.ListConsumers(ctx)
	for c := range consumers.Info() {
		s.Taken[c.Name] += c.NumAckPending
		s.Waiting[c.Name] = max(s.Waiting[c.Name]-c.NumAckPending, 0)
	}
	return consumers.Err()
}
