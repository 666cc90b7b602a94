//go:build linux

package cli

import (
	"context"
	"io"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/apply"
	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/prove"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/safedir"
)

// measure proves the advice.
func (f adviseFlags) measure(ctx, drain context.Context, sys System, a *apply.Advised) (err error) {
	rounds, err := f.length.of(2)
	if err != nil {
		return err
	}
	r := prove.Request{
		Advice: a.Advice, Directions: a.Ranking.Campaign.Directions, Rounds: rounds, Modes: f.modes, Size: unit.Bytes(f.size),
		Progress: progress(sys, f.quiet, ""), Show: func(text, json func(io.Writer) error) error { return f.foundFlags.show(sys, text, json) },
		Bed: f.bed(sys, openssh.Destination{}, "zero"),
	}
	r.Bed.Helper, r.Bed.Everything = helper.Line, true
	if !a.Here() {
		r.Bed.Destination = a.Destination
	}
	return withDir(sys, safedir.WorkdirParams{}, func(dir *safedir.Workdir) error {
		r.Bed.Dir = dir
		return withDir(sys, inMemory, func(memory *safedir.Workdir) error {
			r.Memory = memory
			return prove.Advice(ctx, drain, r)
		})
	})
}
