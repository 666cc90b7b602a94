//go:build linux

package transfer

import (
	"context"
	"slices"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// mode is a line of the table of modes.
type mode struct {
	name  record.Mode
	lacks func(b *Bed, o Options) string // why it cannot be measured here; ""
	run   func(b *Bed, ctx context.Context, o Options, size int64) (Reading, error)
	check func(b *Bed, ctx context.Context, o Options, size int64) error
	files bool // it copies files, many of them if need be
}

// modes are all modes, in the order of reports.
var modes = []mode{
	{record.ModePipe, anywhere, (*Bed).pipe, verified(cat), false},
	copier(record.ModeSCP, func(b *Bed) string { return b.SCP }, scp()),
	copier(record.ModeSCPLegacy, func(b *Bed) string { return b.SCP }, scp("-O")),
	copier(record.ModeSFTP, func(b *Bed) string { return b.SFTP }, sftp),
	copier(record.ModeRsync, func(b *Bed) string { return b.Rsync }, rsync),
	{record.ModeForwardL, anywhere, (*Bed).forwardLocal, nil, false},
	{record.ModeForwardR, anywhere, (*Bed).forwardRemote, nil, false},
	{record.ModeJump, jumps, (*Bed).jump, nil, false},
	{record.ModeMultiplex, anywhere, (*Bed).multiplex, nil, false},
	{record.ModeStreams, anywhere, (*Bed).streams, nil, false},
}

// families are words that mean several modes.
var families = map[string][]record.Mode{
	"scp":     {record.ModeSCP, record.ModeSCPLegacy},
	"forward": {record.ModeForwardL, record.ModeForwardR},
}

// Words are what Modes understands.
func Words() []string {
	return []string{"pipe", "scp", "sftp", "rsync", "forward", "jump", "multiplex", "streams"}
}

// Modes are those that words mean, all for no words; an unknown word is returned.
func Modes(words []string) (meant []record.Mode, unknown string) {
	if len(words) == 0 {
		words = Words()
	}
	for _, word := range words {
		if !slices.Contains(Words(), word) {
			return nil, word
		}
		names, family := families[word]
		if !family {
			names = []record.Mode{record.Mode(word)}
		}
		for _, name := range names {
			if !slices.Contains(meant, name) {
				meant = append(meant, name)
			}
		}
	}
	return meant, ""
}

// copiesFiles reports whether a mode moves files.
func copiesFiles(name record.Mode) bool {
	return slices.ContainsFunc(modes, func(m mode) bool { return m.name == name && m.files })
}

func anywhere(*Bed, Options) string { return "" }

func jumps(b *Bed, _ Options) string {
	if b.Server == nil && b.To.Jump != "" {
		return "the host is already behind a jump host: the other figures include it"
	}
	return ""
}

// copier is the mode of a program that copies files.
func copier(name record.Mode, program func(b *Bed) string, with copying) mode {
	return mode{
		name: name, files: true,
		lacks: func(b *Bed, _ Options) string {
			if program(b) == "" {
				return "it is not installed here"
			}
			return ""
		},
		run: func(b *Bed, ctx context.Context, o Options, size int64) (Reading, error) {
			return b.copied(ctx, o, with, size)
		},
		check: verified(with),
	}
}

// verified copies a file and compares what arrived.
func verified(with copying) func(b *Bed, ctx context.Context, o Options, size int64) error {
	return func(b *Bed, ctx context.Context, o Options, size int64) error {
		o.Files = 0
		_, err := b.copied(ctx, o, with, size)
		return err
	}
}

func (b *Bed) pipe(ctx context.Context, o Options, size int64) (Reading, error) {
	return b.side(ctx, o, size, b.destination(o))
}

// jump is a pipe through a jump host, which is the host itself.
func (b *Bed) jump(ctx context.Context, o Options, size int64) (Reading, error) {
	to := b.destination(o)
	to.Jump, to.Way = to.Host, ""
	if b.Server != nil {
		var err error
		if to, err = b.privateJump(o); err != nil {
			return Reading{}, err
		}
	}
	return b.side(ctx, o, size, to)
}

// Subjects are the methods of these modes with these options.
func (b *Bed) Subjects(names []record.Mode, o Options) []*Subject {
	var all []*Subject
	for _, m := range modes {
		if !slices.Contains(names, m.name) {
			continue
		}
		for _, streams := range m.counts(o) {
			all = append(all, b.subject(m, o, streams))
		}
	}
	return all
}

// counts are the numbers of streams that a mode is measured with: doubled until
// there are as many as were asked for, to see where it stops scaling.
func (m mode) counts(o Options) []int {
	switch {
	case m.name == record.ModeMultiplex:
		return []int{o.Streams}
	case m.name != record.ModeStreams:
		return []int{0}
	}
	var counts []int
	for n := 2; n < o.Streams; n *= 2 {
		counts = append(counts, n)
	}
	return append(counts, o.Streams)
}

func (b *Bed) subject(m mode, o Options, streams int) *Subject {
	o.Streams = streams
	why := m.lacks(b, o)
	if o.Files > 0 && !m.files {
		why = "it copies no files, and --files is for files"
	}
	c := &Subject{
		Method: record.Method{Mode: m.name, Direction: o.Direction, Suite: o.Suite, Streams: streams, Compression: o.Compression, Why: why, Path: PathOf(b.Path)},
		Run:    func(ctx context.Context, size int64) (Reading, error) { return m.run(b, ctx, o, size) },
	}
	if m.files {
		c.disk = func(ctx context.Context) (record.Limit, bool, error) { return b.Disk(ctx, c) }
		c.Files, c.FileBytes = o.Files, unit.Bytes(o.FileBytes)
	}
	if o.Files > 0 && m.files {
		c.fixed = int64(o.Files) * o.FileBytes
	}
	if m.check != nil {
		c.Check = func(ctx context.Context, size int64) error { return m.check(b, ctx, o, size) }
	}
	return c
}
