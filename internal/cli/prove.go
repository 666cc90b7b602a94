//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/measure/workload"
	"sshpace/internal/record"
	"sshpace/internal/verdict/prove"
)

// prove measures both choices in turns.
func (a *adviser) prove(ctx, drain context.Context) (err error) {
	ad := a.advice
	if ad.Present.Bulk() == ad.Advised.Bulk() {
		_, err := fmt.Fprintf(a.sys.Stdout, "# nothing to prove: %s is negotiated now and is advised\n", ad.Present.Bulk())
		return err
	}
	if why := ad.CannotConnect(); why != "" {
		return withHint(errors.New(why), "there is nothing to compare with: use the advised lines")
	}
	if ad.Present.Cipher == "" {
		return usageError("look at ssh -G", "the present choice is not known: there is nothing to compare with")
	}
	modes, unknown := []record.Mode{record.ModeSCP, record.ModeSFTP}, ""
	if len(a.flags.modes) > 0 {
		modes, unknown = workload.Modes(a.flags.modes)
	}
	if unknown != "" {
		return usageError("use "+strings.Join(workload.Words(), ", "), "unknown --mode %q", unknown)
	}
	p := prove.Params{
		Present: ad.Present, Advised: ad.Advised, Directions: a.ranking.Campaign.Directions, Rounds: a.flags.rounds, Modes: modes,
		Progress: func(round int) { fmt.Fprintf(a.sys.Stderr, "round %d of %d\n", round, a.flags.rounds) },
	}
	if p.Size, err = unit.ParseBytes(a.flags.size); err != nil {
		return err
	}
	dir, err := privateDir(a.sys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	memory, err := memoryDir(a.sys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	bed := testbed.Params{
		SSH: a.ssh.Path, SSHD: a.flags.sshd, Engine: record.EngineOpenSSH, Data: "zero", Connect: time.Duration(a.flags.connect),
		Route: a.flags.connection.params(a.sys), Dir: dir, Helper: helper, Everything: true,
	}
	if !a.local() {
		bed.Destination = a.destination
	}
	if p.Bed, err = testbed.Open(ctx, bed); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Bed.Close()) }()
	// Runs of modes wait for all connections of a private server to end: the raw ones,
	// which stay open, have another.
	other := p.Bed
	if a.local() {
		bed.Dir = memory
		if other, err = testbed.Open(ctx, bed); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.Close()) }()
	}
	ground, cleanUp, groundErr := workload.Open(ctx, other, memory.Path, true, helper)
	defer cleanUp()
	if groundErr == nil {
		p.Ground = ground
	} else {
		fmt.Fprintf(a.sys.Stdout, "# only raw transfers: %s\n", termsafe.OneLine(groundErr.Error()))
	}
	proof, err := prove.Measure(ctx, drain, p)
	if err == nil {
		proof.Write(a.sys.Stdout)
	}
	return err
}
