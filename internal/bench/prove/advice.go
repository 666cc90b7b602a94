//go:build linux

package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

// Request says which advice is to be proved, and how.
type Request struct {
	Advice     *advise.Advice
	Directions []record.Direction
	Rounds     sched.Rounds                                 // such as DefaultRounds
	Modes      []string                                     // words for what people do, beside the raw transfer; nil: scp and sftp
	Size       unit.Bytes                                   // that modes move
	Bed        testbed.Params                               // without a host the server is a private one
	Memory     *safedir.Workdir                             // for the modes
	Show       func(text, json func(io.Writer) error) error // what the rounds showed
	Progress   func(what string)
}

// Advice measures what a user has now and what is advised, in turns, and writes what
// that showed.
func Advice(ctx, drain context.Context, r Request) (err error) {
	ad := r.Advice
	if ad.Present.Bulk() == ad.Advised.Bulk() {
		return r.Show(func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "# nothing to prove: ssh uses %s already\n", ad.Present.Bulk())
			return err
		}, (&proof{suites: [2]alg.Suite{ad.Present, ad.Advised}}).json)
	}
	p, err := r.params()
	if err != nil {
		return err
	}
	if p.bed, err = testbed.Open(ctx, r.Bed); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.bed.Close()) }()
	ground, cleanUp, groundErr := transfer.Open(ctx, p.bed, r.Memory.Path, "", true, r.Bed.Helper)
	defer cleanUp()
	if groundErr == nil {
		p.ground = ground
	}
	proof, err := measure(ctx, drain, p)
	if err != nil {
		return err
	}
	if groundErr != nil {
		proof.left = append(proof.left, "copies: "+groundErr.Error())
	}
	return r.Show(proof.write, proof.json)
}

// params refuses what cannot be compared.
func (r *Request) params() (p params, err error) {
	ad := r.Advice
	if why := ad.CannotConnect(); why != "" {
		return p, fault.WithHint(errors.New(why), "there is nothing to compare with: use the advised lines")
	}
	if ad.Present.Cipher == "" {
		return p, fault.Usage("look at ssh -G", "the present choice is not known: there is nothing to compare with")
	}
	modes, unknown := []record.Mode{record.ModeSCP, record.ModeSFTP}, ""
	if len(r.Modes) > 0 {
		modes, unknown = transfer.Modes(r.Modes)
	}
	if unknown != "" {
		return p, fault.Usage("use "+strings.Join(transfer.Words(), ", "), "unknown --only %q", unknown)
	}
	return params{
		present: ad.Present, advised: ad.Advised, directions: r.Directions, rounds: r.Rounds, modes: modes, size: r.Size,
		progress: func(round int) { r.Progress(r.Rounds.Progress(round)) },
	}, nil
}
