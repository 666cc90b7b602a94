package hub

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sshpace/internal/fanout/job"
)

// The streams of a hub.
const (
	jobs    = "JOBS"
	batches = "BATCHES"
	events  = "EVENTS"
	alive   = "ALIVE"
)

// streamOf says which stream keeps entries, by the first part of their subjects.
var streamOf = map[string]string{"job": jobs, "stop": jobs, "batch": batches, "event": events, "alive": alive}

// stream returns the name of the stream that keeps a subject, or a pattern of one kind.
func stream(subject string) string {
	kind, _, _ := strings.Cut(subject, ".")
	return streamOf[kind]
}

// window is how long a hub remembers the ids of entries.
const window = 2 * time.Minute

// configs returns the streams. What is full refuses new entries and never drops old ones. A job's
// part, a stop and a batch are kept once.
func configs(l job.Limits) []jetstream.StreamConfig {
	all := []jetstream.StreamConfig{
		{Name: jobs, Subjects: []string{"job.>", "stop.>"}, MaxMsgsPerSubject: 1, DiscardNewPerSubject: true, MaxBytes: l.Bytes / 8},
		{Name: batches, Subjects: []string{"batch.>"}, Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1, DiscardNewPerSubject: true, MaxBytes: l.Bytes / 8},
		{Name: events, Subjects: []string{"event.>"}, MaxBytes: l.Bytes},
		{Name: alive, Subjects: []string{"alive.>"}, MaxMsgsPerSubject: 1, Storage: jetstream.MemoryStorage, MaxBytes: 64 << 20},
	}
	for i := range all {
		c := &all[i]
		c.AllowDirect, c.Duplicates, c.Replicas, c.MaxAge = true, window, l.Replicas, l.Age
		c.Discard = jetstream.DiscardNew
		if c.Name == alive {
			c.MaxAge, c.Discard = job.AliveAge, jetstream.DiscardOld
		}
	}
	return all
}

// prepare makes the streams of a hub, or gives those that it has other limits. full lets none of
// them grow on disk.
func (b *bus) prepare(ctx context.Context, l job.Limits, full bool) error {
	for _, config := range configs(l) {
		if full && config.Storage == jetstream.FileStorage {
			config.MaxBytes = 1
		}
		if err := b.do(ctx, config.Name, func(ctx context.Context) error {
			_, err := b.js.CreateOrUpdateStream(ctx, config)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
