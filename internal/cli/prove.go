//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/measure/testbed"
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
	p := prove.Params{
		Present: ad.Present, Advised: ad.Advised, Directions: a.ranking.Campaign.Directions, Rounds: a.flags.rounds, Connect: time.Duration(a.flags.connect),
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
	if p.Memory, err = memoryDir(a.sys); err != nil {
		return err
	}
	defer p.Memory.Close()
	bed := testbed.Params{
		SSH: a.ssh.Path, SSHD: a.flags.sshd, Engine: record.EngineOpenSSH, Data: "zero", Connect: p.Connect,
		Route: a.flags.connection.params(a.sys), Dir: dir, Helper: helper,
	}
	if !a.local() {
		bed.Destination = a.destination
	}
	if p.Bed, err = testbed.Open(ctx, bed); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Bed.Close()) }()
	proof, err := prove.Measure(ctx, drain, p)
	if err == nil {
		proof.Write(a.sys.Stdout)
	}
	return err
}
