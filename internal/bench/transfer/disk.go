//go:build linux

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sshpace/internal/bench/limits"
	"sshpace/internal/record"
)

// diskTurns is how often the files and the copy are timed, in turns.
const diskTurns = 2

// Disk reports whether the files at one end are the limit of a copy: they are read, and written,
// once without SSH, in the same way and as much. The second result is the answer.
func (b *Ground) Disk(ctx context.Context, c *Subject) (l record.Limit, is bool, err error) {
	size, up := int64(c.SizeBytes), c.Direction == record.Upload
	l = record.Limit{Mode: c.Mode, Direction: c.Direction, Suite: c.Suite, Path: c.Path}
	from, err := b.Here.Of(size)
	if err != nil {
		return l, false, err
	}
	source, sink := Local(b.Here.Directory), b.There
	if !up {
		source, sink = sink, source
		if from, err = source.Payload(ctx, from, size); err != nil {
			return l, false, err
		}
	}
	var copied, read, written time.Duration
	for range diskTurns {
		for _, timed := range []struct {
			least *time.Duration
			take  func() (time.Duration, error)
		}{
			{&read, func() (time.Duration, error) { return source.Read(ctx, from) }},
			{&written, func() (time.Duration, error) { return sink.Write(ctx, size) }},
			{&copied, func() (time.Duration, error) { return c.net(ctx, size) }},
		} {
			took, err := timed.take()
			if err != nil {
				return l, false, err
			}
			if took > 0 && (*timed.least == 0 || took < *timed.least) {
				*timed.least = took
			}
		}
	}
	rate := func(took time.Duration) float64 {
		if took <= 0 {
			return 0
		}
		return float64(size) / took.Seconds()
	}
	l.Evidence = record.Evidence{BytesPerSecond: rate(copied), ReadBytesPerS: rate(read), WriteBytesPerS: rate(written)}
	l.What, l.Sentence, l.Help, is = limits.JudgeDisk(l.Evidence, b.Server == nil, up)
	return l, is, nil
}

// net returns the time of a run without that of a single byte; 0 where other work hides the
// difference.
func (c *Subject) net(ctx context.Context, size int64) (time.Duration, error) {
	long, err := c.Run(ctx, size)
	if err != nil {
		return 0, err
	}
	short, err := c.Run(ctx, 1)
	if err != nil || !record.Tells(long.Wall, short.Wall) {
		return 0, err
	}
	return long.Wall - short.Wall, nil
}

// block is the size of reads and writes, as in SFTP.
const block = 32 << 10

func (l local) Read(_ context.Context, path string) (time.Duration, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	began := time.Now()
	_, err = io.CopyBuffer(io.Discard, struct{ io.Reader }{file}, make([]byte, block))
	return time.Since(began), err
}

func (l local) Write(_ context.Context, size int64) (took time.Duration, err error) {
	path := l.Path("plain")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer os.Remove(path)
	piece := make([]byte, block)
	began := time.Now()
	for left := size; left > 0 && err == nil; left -= block {
		_, err = file.Write(piece[:min(left, block)])
	}
	err = errors.Join(err, file.Close())
	return time.Since(began), err
}

func (r *remote) Read(ctx context.Context, path string) (time.Duration, error) {
	return r.timed(ctx, "cat "+path+" >/dev/null")
}

func (r *remote) Write(ctx context.Context, size int64) (time.Duration, error) {
	return r.timed(ctx, fmt.Sprintf("head -c %d /dev/zero >%s", size, r.Path("plain")))
}

// timed returns the time of a command on the host, without the login.
func (r *remote) timed(ctx context.Context, command string) (time.Duration, error) {
	var took [2]time.Duration
	for i, each := range []string{"true", command} {
		began := time.Now()
		if _, err := r.ask(ctx, each, nil); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	return max(0, took[1]-took[0]), nil
}

// disks looks for copies that are limited by the files at one end, for each direction and path the
// first that was measured, and records it.
func disks(ctx context.Context, all []*Subject, sink record.Sink) error {
	type place struct {
		record.Direction
		record.Path
	}
	looked := map[place]bool{}
	for _, c := range all {
		if here := (place{c.Direction, c.Path}); c.disk == nil || c.Why != "" || c.failed || c.Files > 0 || looked[here] {
			continue
		} else {
			looked[here] = true
		}
		limit, is, err := c.disk(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && !is {
			continue
		}
		if err := noted(sink, limit, err, "it was not found out whether a disk limits a copy"); err != nil {
			return err
		}
	}
	return nil
}
