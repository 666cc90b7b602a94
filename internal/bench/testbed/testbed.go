//go:build linux

// Package testbed prepares two ends for measurements: our own client and server on loopback, or the
// user's ssh and a host of theirs.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/drive"
	"sshpace/internal/bench/hostinfo"
	"sshpace/internal/bench/lab"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// Testbed is a client and a server that are ready to be measured.
type Testbed struct {
	drive.Rig
	Driver      Driver
	Target      string // label
	Engine      record.Engine
	Kind        record.ServerKind
	Environment record.Environment
	Client      alg.Offer // the offers of both sides
	Offered     alg.Offer
	Findings    []record.Finding
	Login       time.Duration // that a host took for the first one; 0 for the private server

	close func() error
}

// Driver carries plans out.
type Driver interface {
	lab.Driver
	Capacity() int // connections that can be open at a time
}

// Params select the parts of a testbed.
type Params struct {
	SSH, SSHD   string            // paths; "" to search
	Engine      record.Engine     // "" to choose
	Server      record.ServerKind // "" to choose; not remote
	Data        string
	Connect     time.Duration
	Destination openssh.Destination // Host "" for the private server
	Route       route.Params        // that the destination was made with
	Once        bool                // a host that refuses is not asked again
	Login       time.Duration       // limit of a whole login to a host, where that is longer than Connect
	Everything  bool                // the private server permits forwarded ports, compression and many sessions
	Dir         *safedir.Workdir    // for keys, logs and sockets; the caller closes it
	// Helper is the command line of a helper program of ours.
	Helper func(program string) []string
}

// LoadLook is how long the machine's load is watched before a run.
const LoadLook = 100 * time.Millisecond

// Open starts the necessary programs and reads the offers of both sides. The caller closes the
// testbed.
func Open(ctx context.Context, p Params) (b *Testbed, err error) {
	spawner := proc.NewSpawner()
	b = &Testbed{close: func() error { spawner.Close(); return nil }, Rig: drive.Rig{
		Bed:  bed.Bed{Destination: p.Destination, Connect: p.Connect},
		Site: loopback.Site{Dir: p.Dir, Spawner: spawner, Helper: p.Helper}, Data: p.Data,
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	b.Environment = hostinfo.Describe(LoadLook)
	if p.Destination.Host != "" {
		return b, b.openHost(ctx, p)
	}
	return b, b.openPrivate(ctx, p)
}

// Close ends the programs.
func (b *Testbed) Close() error { return b.close() }

func (b *Testbed) note(what, why, fix string) {
	b.Findings = append(b.Findings, record.Finding{What: what, Why: why, Fix: fix})
}

// OneSided lists the algorithms that only one side has, with the reason why they are not measured.
func (b *Testbed) OneSided() []record.Finding {
	var findings []record.Finding
	for _, kind := range alg.Measured {
		for _, side := range []struct {
			names []string
			why   string
		}{
			{b.Client.Without(b.Offered, kind), "only the client has it: the server does not offer it"},
			{b.Offered.Without(b.Client, kind), "only the server has it: the client was built without it"},
		} {
			for _, name := range side.names {
				findings = append(findings, record.Finding{What: fmt.Sprintf("%s %s is not measured", kind, name), Why: side.why})
			}
		}
	}
	return findings
}

// Chosen returns the algorithms that both sides have, and the user's selection of them.
func (b *Testbed) Chosen(wanted Selection) (chosen, shared alg.Offer, err error) {
	if shared, err = b.Shared(); err == nil {
		chosen, err = wanted.apply(shared, b.Client, b.Offered)
	}
	return chosen, shared, err
}

// Shared returns the algorithms that both sides have, in the client's order.
func (b *Testbed) Shared() (alg.Offer, error) {
	offer := b.Client.Intersect(b.Offered)
	for kind, names := range map[alg.Kind][]string{alg.Cipher: offer.Ciphers, alg.Kex: offer.Kex} {
		if len(names) == 0 {
			return offer, &fault.Error{
				What: fmt.Sprintf("client and server have no %s in common", kind),
				Hint: fmt.Sprintf("the client has %s; the server offers %s", strings.Join(b.Client.List(kind), ","), strings.Join(b.Offered.List(kind), ",")),
			}
		}
	}
	return offer, nil
}
