//go:build linux

package transfer

import (
	"context"
	"errors"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/limits"
	"sshpace/internal/record"
	"sshpace/internal/sys/relay"
)

// Params select the methods to measure.
type Params struct {
	Modes      []record.Mode
	Directions []record.Direction
	Suites     []alg.Suite
	Paths      []relay.Path // before a private server; none: no relay
	Options                 // Suite and Direction are set for each
	Turns      Turns
}

// Measure measures every mode in every direction with every suite, in turns, and records the
// results. Before that it measures how fast files can be read at all, so that a disk is not
// mistaken for SSH.
func (b *Ground) Measure(ctx, drain context.Context, p Params, sink record.Sink) error {
	defer b.Here.Remove()
	var relays relay.Group
	defer relays.Close()
	grounds, err := b.over(p.Paths, &relays)
	if err != nil {
		return err
	}
	all := subjects(grounds, p)
	if p.Turns.List {
		return p.Turns.Measure(ctx, drain, all, sink)
	}
	if err := b.tidied(sink); err != nil {
		return err
	}
	if old := p.Turns.Old; old == nil || len(old.Measurements) == 0 {
		if err := b.control(ctx, sink); err != nil {
			return err
		}
	}
	if err := p.Turns.Measure(ctx, drain, all, sink); err != nil || drain.Err() != nil {
		return err
	}
	if err := disks(ctx, all, sink); err != nil {
		return err
	}
	o := p.Options
	o.Suite = p.Suites[0]
	for _, ground := range grounds {
		if err := ground.Limits(ctx, o, ground.unlimited(p), sink); err != nil {
			return err
		}
	}
	return nil
}

// unlimited returns the directions whose limit nobody has looked for yet.
func (b *Ground) unlimited(p Params) []record.Direction {
	if p.Turns.Old == nil {
		return p.Directions
	}
	return slices.DeleteFunc(slices.Clone(p.Directions), func(d record.Direction) bool {
		return slices.ContainsFunc(p.Turns.Old.Limits, func(l record.Limit) bool { return l.Direction == d && l.Path == PathOf(b.Path) })
	})
}

// over returns a ground for each path.
func (b *Ground) over(paths []relay.Path, relays *relay.Group) (grounds []*Ground, err error) {
	for _, path := range paths {
		far, err := b.Over(path, relays)
		if err != nil {
			return nil, err
		}
		grounds = append(grounds, far)
	}
	if len(grounds) == 0 {
		grounds = []*Ground{b}
	}
	return grounds, nil
}

// subjects returns all methods: those that differ only in the path come together.
func subjects(grounds []*Ground, p Params) (all []*Subject) {
	for i, suite := range p.Suites {
		for _, direction := range p.Directions {
			for _, mode := range p.Modes {
				if i > 0 && mode == record.ModeKept { // it has but the one
					continue
				}
				for _, ground := range grounds {
					o := p.Options
					o.Suite, o.Direction = suite, direction
					all = append(all, ground.Subjects([]record.Mode{mode}, o)...)
				}
			}
		}
	}
	return all
}

// Limits looks for the limit of a pipe in each direction, and records it. An unknown limit is not a
// failure.
func (b *Ground) Limits(ctx context.Context, o Options, directions []record.Direction, sink record.Sink) error {
	for _, direction := range directions {
		o.Direction = direction
		limit, err := b.Limit(ctx, o, Ends{})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := noted(sink, limit, err, "the limit of a pipe was not found"); err != nil {
			return err
		}
	}
	return nil
}

// noted records a limit, or that it was not found, and why.
func noted(sink record.Sink, l record.Limit, why error, what string) error {
	if why != nil {
		return sink(&record.Finding{What: what, Why: why.Error()})
	}
	return sink(&l)
}

// tidied records the leftovers that were removed on the host.
func (b *Ground) tidied(sink record.Sink) (err error) {
	for _, path := range b.Swept {
		err = errors.Join(err, sink(&record.Finding{What: "a killed run had left " + path + " on the host", Why: "it is removed"}))
	}
	return err
}

// controlled is the size of the file by which reading is measured.
const controlled = 64 << 20

// control measures how fast files are read here.
func (b *Ground) control(ctx context.Context, sink record.Sink) error {
	path, err := b.Here.Of(controlled)
	if err != nil {
		return err
	}
	rates, err := limits.FileRead(ctx, path)
	for _, m := range rates {
		err = errors.Join(err, sink(&m))
	}
	return err
}
