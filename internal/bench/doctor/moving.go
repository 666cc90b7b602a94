//go:build linux

package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/bench/latency"
	"sshpace/internal/bench/limits"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// A transfer finds its pace, and is then measured for a while: both longer over
// a long path, by a few round trips.
const (
	paceTime = 300 * time.Millisecond
	moveTime = 700 * time.Millisecond
	trips    = 3
)

// SlowCipher is the processor time of a byte, in ns, from which on a cipher is
// compared with another: about twice what one with hardware support takes.
const SlowCipher = 3.0

// moving measures a short transfer, and compares it with what would be faster
// where there is reason to.
func (p *Patient) moving(ctx context.Context) error {
	t, l := &p.facts.Transfers, p.facts.Logins
	if t.Present = p.transfer(ctx, 1); t.Present.BytesPerS == 0 {
		return nil
	}
	if l.Zipped {
		t.Plain = p.transfer(ctx, 1, "Compression=no")
	}
	if other := otherCipher(l.Cipher, l.Offered.Ciphers); other != "" && t.Present.CPUPerByte > SlowCipher && !l.Zipped {
		t.Cipher, t.Other = other, p.transfer(ctx, 1, "Ciphers="+other)
		t.Present = t.Present.calmer(p.transfer(ctx, 1))
		t.Other = t.Other.calmer(p.transfer(ctx, 1, "Ciphers="+other))
	}
	if p.facts.Window() {
		t.Twice = p.transfer(ctx, 2)
	}
	return nil
}

// calmer is the one of two equal transfers that took less processor time: other work
// on the machine only ever adds to it.
func (t Transfer) calmer(again Transfer) Transfer {
	if t.CPUPerByte == 0 || again.CPUPerByte != 0 && again.CPUPerByte < t.CPUPerByte {
		return again
	}
	return t
}

// Window tells whether OpenSSH's window may be what limits the present transfer.
func (f *Facts) Window() bool {
	what, _, _ := limits.Judge(record.Upload, record.Evidence{
		RTTNS: f.PathTime(), BytesPerSecond: f.Transfers.Present.BytesPerS, ClientShare: &f.Transfers.Present.CPUShare,
	})
	return what == record.LimitWindow
}

// PathTime is the round trip of a session: TCP's may end at a proxy before the
// host.
func (f *Facts) PathTime() time.Duration { return time.Duration(f.Logins.Exec.Lo) }

// otherCipher is one without AES where the present one is an old one or AES, which
// wants hardware.
func otherCipher(present string, offered []string) string {
	const chacha, gcm = "chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com"
	switch {
	case strings.HasPrefix(present, "chacha20"):
		return ""
	case slices.Contains(offered, chacha):
		return chacha
	case slices.Contains(offered, gcm) && present != gcm:
		return gcm
	}
	return ""
}

// transfer uploads over some connections at once, and tells what all of them
// moved, and the first one's processor time. Nothing is known of one that fails.
func (p *Patient) transfer(ctx context.Context, connections int, settings ...string) (t Transfer) {
	c := latency.Client{SSH: p.SSH, Destination: p.Destination.With(settings...), Connect: p.Connect}
	var loads []*latency.Load
	defer func() {
		for _, l := range loads {
			l.Close()
		}
	}()
	for range connections {
		if !p.pace.Await(ctx) {
			return t
		}
		p.Progress("a short transfer " + strings.Join(settings, " "))
		l, err := c.OpenLoad(ctx, latency.Upload)
		p.pace.Ended()
		if err != nil {
			return t
		}
		p.made++
		loads = append(loads, l)
	}
	return timed(ctx, loads, trips*p.facts.PathTime())
}

// timed lets transfers flow and measures them once they have found their pace.
func timed(ctx context.Context, loads []*latency.Load, longer time.Duration) (t Transfer) {
	clock, err := proc.OpenClock(loads[0].Process())
	if err != nil {
		return t
	}
	defer clock.Close()
	moved := func() (n int64) {
		for _, l := range loads {
			n += l.Moved()
		}
		return n
	}
	for _, l := range loads {
		l.Flow(true)
	}
	if !sched.For(ctx, paceTime+longer) {
		return t
	}
	began, before, first := time.Now(), moved(), loads[0].Moved()
	used, err := clock.CPU()
	if err != nil || !sched.For(ctx, moveTime+longer) {
		return t
	}
	wall, bytes, own := time.Since(began), moved()-before, loads[0].Moved()-first
	after, err := clock.CPU()
	if err != nil || own == 0 {
		return t
	}
	return Transfer{float64(bytes) / wall.Seconds(), float64(after-used) / float64(own), (after - used).Seconds() / wall.Seconds()}
}
