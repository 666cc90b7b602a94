//go:build linux

package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Exchange is the negotiated key exchange next to one that is at least as safe; Instead "" is one
// that is merely cheap, to show the cost of the present one.
type Exchange struct {
	Instead   string
	Safe      bool           // as safe as the present one
	ClientCPU stats.Interval // of a login with it
}

// Processor times of a login from which on its key exchange is compared with another: one that is
// as safe, or one that is merely cheap, to show the cost of the present one. A login with a cheap
// one takes 9 to 25 ms.
const (
	costly     = 25 * time.Millisecond
	veryCostly = 400 * time.Millisecond
)

// exchanges measures logins with a cheaper key exchange, where the present one is costly.
func (p *Patient) exchanges(ctx context.Context) error {
	l := p.facts.Logins
	if time.Duration(l.ClientCPU.Lo) < costly {
		return nil
	}
	mine, err := p.SSH.Query(ctx)
	if err != nil {
		return nil
	}
	name, safe := cheaper(l.Kex, mine.Intersect(l.Offered).Kex)
	if name == "" || !safe && time.Duration(l.ClientCPU.Lo) < veryCostly {
		return nil
	}
	ends := p.ends()
	var used []time.Duration
	for range 2 {
		p.Progress("login with " + name)
		l, err := p.login(ctx, ends, ends.Argv(alg.Suite{Kex: name}, "true"))
		if err != nil {
			return nil // the present one works: no fault of the host's
		}
		used = append(used, l.ClientCPU)
	}
	p.facts.Exchange = &Exchange{name, safe, middle(used)}
	return nil
}

// cheaper returns a key exchange of both sides that costs less than the present one, one that is as
// safe if possible.
func cheaper(present string, both []string) (name string, safe bool) {
	now, known := alg.Lookup(alg.Kex, present)
	for _, candidate := range alg.CheapKex {
		if alg.Canonical(alg.Kex, candidate) == alg.Canonical(alg.Kex, present) {
			break
		}
		a, ok := alg.Lookup(alg.Kex, candidate)
		if !ok || !slices.Contains(both, candidate) {
			continue
		}
		if known && (a.PostQuantum || !now.PostQuantum) {
			return candidate, true
		}
		name = cmp.Or(name, candidate)
	}
	return name, false
}
