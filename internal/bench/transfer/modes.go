//go:build linux

package transfer

import (
	"context"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// mode is a line of the table of modes. Its word, for --only, is the first of its name.
type mode struct {
	name    record.Mode
	program string  // that copies files, many of them if need be; ""
	copies  copying // how it does that, or how the mode is checked; nil: it is not
	lands   landing // where a copy is, if not at its target; nil: it is there
	run     func(b *Ground, ctx context.Context, o Options, size int64) (Reading, error)
	lacks   func(b *Ground) string // why it cannot be measured here, ""; nil: it always can
}

// modes lists all modes, in the order of reports.
var modes = []mode{
	{name: record.ModePipe, run: (*Ground).pipe, copies: cat},
	{name: record.ModeSCP, program: "scp", copies: scp()},
	{name: record.ModeSCPLegacy, program: "scp", copies: scp("-O")},
	{name: record.ModeSFTP, program: "sftp", copies: sftp},
	{name: record.ModeRsync, program: "rsync", copies: rsync},
	{name: record.ModeMSCP, program: "mscp", copies: mscp},
	{name: record.ModeOwn, program: "sshpace", copies: own, lands: ownPlace},
	{name: record.ModeForwardL, run: (*Ground).forwardLocal},
	{name: record.ModeForwardR, run: (*Ground).forwardRemote},
	{name: record.ModeJump, run: (*Ground).jump, lacks: jumps},
	{name: record.ModeMultiplex, run: (*Ground).multiplex},
	{name: record.ModeKept, run: (*Ground).kept, lacks: func(b *Ground) string { return b.Destination.Unkept() }},
	{name: record.ModeStreams, run: (*Ground).streams},
}

// word is the name of the mode, alone or with others.
func (m mode) word() string {
	word, _, _ := strings.Cut(string(m.name), " ")
	return word
}

// isCopy reports whether the mode copies files.
func (m mode) isCopy() bool { return m.program != "" }

// Words returns the words that Modes understands.
func Words() []string { return wordsOf(func(mode) bool { return true }) }

// wordsOf returns the words of some modes.
func wordsOf(which func(m mode) bool) (words []string) {
	for _, m := range modes {
		if which(m) && !slices.Contains(words, m.word()) {
			words = append(words, m.word())
		}
	}
	return words
}

// Modes returns the modes of words, all for no words; an unknown word is returned.
func Modes(words []string) (meant []record.Mode, unknown string) {
	if len(words) == 0 {
		words = Words()
	}
	for _, word := range words {
		if !slices.Contains(Words(), word) {
			return nil, word
		}
		for _, m := range modes {
			if m.word() == word && !slices.Contains(meant, m.name) {
				meant = append(meant, m.name)
			}
		}
	}
	return meant, ""
}

// copiesFiles reports whether a mode moves files.
func copiesFiles(name record.Mode) bool {
	return slices.ContainsFunc(modes, func(m mode) bool { return m.name == name && m.isCopy() })
}

func jumps(b *Ground) string {
	if b.Server == nil && b.Destination.Jump != "" {
		return "the host is already behind a jump host: the other figures include it"
	}
	return ""
}

// why returns the reason why a mode cannot be measured here with these options; "".
func (m mode) why(b *Ground, o Options) string {
	switch {
	case o.Files > 0 && !m.isCopy():
		return "it copies no files, and --files is for files"
	case m.isCopy() && b.Programs[m.program] == "":
		return "it is not installed here"
	case m.lacks != nil:
		return m.lacks(b)
	}
	return ""
}

// move carries out the mode.
func (m mode) move(ctx context.Context, b *Ground, o Options, size int64) (Reading, error) {
	if m.isCopy() {
		return b.copied(ctx, o, m, size)
	}
	return m.run(b, ctx, o, size)
}

func (b *Ground) pipe(ctx context.Context, o Options, size int64) (Reading, error) {
	return b.side(ctx, o, size, b.destination(o))
}

// jump is a pipe through a jump host, which is the host itself.
func (b *Ground) jump(ctx context.Context, o Options, size int64) (Reading, error) {
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

// Subjects returns the methods of these modes with these options.
func (b *Ground) Subjects(names []record.Mode, o Options) []*Subject {
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

// counts returns the numbers of streams of a mode: doubled up to the requested one, to see where it
// stops scaling.
func (m mode) counts(o Options) []int {
	switch {
	case m.name == record.ModeMultiplex, m.name == record.ModeMSCP:
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

func (b *Ground) subject(m mode, o Options, streams int) *Subject {
	if o.Streams = streams; m.name == record.ModeKept { // its login settled these
		o.Suite, o.Compression = alg.Suite{}, false
	}
	c := &Subject{
		Method: record.Method{Mode: m.name, Direction: o.Direction, Suite: o.Suite, Streams: streams, Compression: o.Compression, Why: m.why(b, o), Path: PathOf(b.Path)},
		Run:    func(ctx context.Context, size int64) (Reading, error) { return m.move(ctx, b, o, size) },
	}
	if m.isCopy() {
		c.disk = func(ctx context.Context) (record.Limit, bool, error) { return b.Disk(ctx, c) }
		c.Files, c.FileBytes = o.Files, unit.Bytes(o.FileBytes)
		c.fixed = int64(o.Files) * o.FileBytes
	}
	if m.copies != nil {
		c.Check = func(ctx context.Context, size int64) error { return b.verified(ctx, o, m, size) }
	}
	return c
}

// verified copies a file and compares the copy.
func (b *Ground) verified(ctx context.Context, o Options, m mode, size int64) error {
	o.Files = 0
	_, err := b.copied(ctx, o, m, size)
	return err
}
