package keep

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// surroundings is the state of the computer that connections depend on.
type surroundings struct {
	ahead     time.Duration // of the clock that runs also while the computer sleeps, but can be set
	addresses string        // of this computer; "" if they are unknown
}

// around returns the present surroundings.
func around(began time.Time) surroundings {
	now := time.Now()
	s := surroundings{ahead: now.Round(0).Sub(began.Round(0)) - now.Sub(began)}
	all, _ := net.InterfaceAddrs()
	var text strings.Builder
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLinkLocalUnicast() { // those of containers come and go
			fmt.Fprintln(&text, a)
		}
	}
	s.addresses = text.String()
	return s
}

// since returns how long the computer has slept since an earlier look, or its clock was set
// forward, and whether connections may be dead: after that, or with other addresses.
func (s surroundings) since(before surroundings) (slept time.Duration, dead bool) {
	const clocksAgree = time.Second
	if slept = s.ahead - before.ahead; slept.Abs() < clocksAgree {
		slept = 0
	}
	return max(slept, 0), slept != 0 || s.addresses != before.addresses && s.addresses != ""
}

// lookAround is the time between two looks.
const lookAround = 3 * time.Second

// guard ends everything once its time is over, and has servers asked whether they live when that is
// in doubt.
func (k *Keeper) guard() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-k.life.Done():
			return
		case <-timer.C:
		}
		now := around(k.began)
		slept, dead := now.since(k.around)
		k.around = now
		if k.slept.Add(int64(slept)); dead {
			k.check()
		}
		wait := lookAround
		if k.For > 0 {
			if wait = min(wait, k.For-k.age()); wait <= 0 {
				k.end()
			}
		}
		timer.Reset(wait)
	}
}

// age is the time since New, also that in which the computer slept.
func (k *Keeper) age() time.Duration { return time.Since(k.began) + time.Duration(k.slept.Load()) }

// check asks all servers whether they live. Lost hosts are tried again as if they were lost now.
func (k *Keeper) check() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.places {
		switch {
		case p.held != nil:
			p.held.server.Check()
		case p.state == Back:
			p.tries, p.due = 0, time.Now().Add(backoff(0))
		}
	}
	k.wake()
}
