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

// Request selects the advice to prove, and the method.
type Request struct {
	Advice     *advise.Advice
	Directions []record.Direction
	Rounds     sched.Rounds                                 // such as DefaultRounds
	Modes      []string                                     // names of modes besides the raw transfer; nil: scp and sftp
	Size       unit.Bytes                                   // that modes move
	Bed        testbed.Params                               // without a host the server is a private one
	Memory     *safedir.Workdir                             // for the modes
	Show       func(text, json func(io.Writer) error) error // result of the rounds
	Progress   func(what string)
}

// Advice measures the user's present choice and the advised one, in turns, and writes the result.
func Advice(ctx, drain context.Context, r Request) (err error) {
	p := &proof{Request: r, suites: [2]alg.Suite{r.Advice.Present, r.Advice.Advised}}
	if now := p.suites[0].Bulk(); now == p.suites[1].Bulk() {
		return r.Show(func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "# nothing to prove: ssh uses %s already\n", now)
			return err
		}, p.json)
	}
	modes, err := r.comparable()
	if err != nil {
		return err
	}
	bed, err := testbed.Open(ctx, r.Bed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	ground, cleanUp, groundErr := transfer.Open(ctx, bed, r.Memory.Path, "", true)
	defer cleanUp()
	if groundErr == nil {
		p.include(ground, modes)
	} else {
		p.left = append(p.left, "copies: "+groundErr.Error())
	}
	if err := p.measure(ctx, drain, bed); err != nil {
		return bed.Explain(err)
	}
	return r.Show(p.write, p.json)
}

// comparable refuses choices that cannot be compared, and returns the modes that both allow.
func (r *Request) comparable() ([]record.Mode, error) {
	if why := r.Advice.CannotConnect(); why != "" {
		return nil, fault.WithHint(errors.New(why), "there is nothing to compare with: use the advised lines")
	}
	if r.Advice.Present.Cipher == "" {
		return nil, fault.Usage("look at ssh -G", "the present choice is not known: there is nothing to compare with")
	}
	if len(r.Modes) == 0 {
		return []record.Mode{record.ModeSCP, record.ModeSFTP}, nil
	}
	modes, unknown := transfer.Modes(r.Modes)
	if unknown != "" {
		return nil, fault.Usage("use "+strings.Join(transfer.Words(), ", "), "unknown --only %q", unknown)
	}
	return modes, nil
}
