//go:build linux

package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/limits"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// trips is the number of additional round trips in which a transfer reaches its full speed; it is
// measured for as long.
const trips = 3

// SlowCipher is the processor time of a byte, in ns, from which on a cipher is compared with
// another: about twice that of a cipher with hardware support.
const SlowCipher = 3.0

// moving measures a short transfer, and compares it with faster alternatives if there is reason to.
func (p *Patient) moving(ctx context.Context) error {
	t, l := &p.facts.Transfers, p.facts.Logins
	now := transfer.Options{Compression: l.Zipped}
	if t.Present = p.transfer(ctx, 1, now, ""); t.Present.BytesPerSecond == 0 {
		return nil
	}
	if l.Zipped {
		t.Plain = p.transfer(ctx, 1, transfer.Options{}, " without compression")
	}
	if other := otherCipher(l.Cipher, l.Offered.Ciphers); other != "" && t.Present.CPUPerByte > SlowCipher && !l.Zipped {
		again := func() Transfer {
			return p.transfer(ctx, 1, transfer.Options{Suite: alg.Suite{Cipher: other}}, " with "+other)
		}
		t.Cipher, t.Other = other, again()
		t.Present = t.Present.calmer(p.transfer(ctx, 1, now, ""))
		t.Other = t.Other.calmer(again())
	}
	if p.facts.Window() {
		t.Twice = p.transfer(ctx, 2, now, " over two connections")
	}
	return nil
}

// calmer returns the one of two equal transfers that took less processor time: other work on the
// machine only ever adds to it.
func (t Transfer) calmer(again Transfer) Transfer {
	if t.CPUPerByte == 0 || again.CPUPerByte != 0 && again.CPUPerByte < t.CPUPerByte {
		return again
	}
	return t
}

// answered returns the time in which the host answered the message of a login that it usually
// answers first: a round trip to the host itself, which TCP's may not be. On a busy machine some
// take longer, and some seem shorter, because ssh reports late that it sent them.
func (l *Logins) answered() (least time.Duration) {
	for _, each := range []stats.Interval{l.Service, l.Request, l.Session, l.Exec} {
		if took := time.Duration(each.Value); each.N > 0 && (least == 0 || took < least) {
			least = took
		}
	}
	return least
}

// Window reports whether OpenSSH's window limits the present transfer, as far as is known.
func (f *Facts) Window() bool {
	e := f.Transfers.Present.Evidence
	e.RTTNS, e.TCPRTTNS = f.Logins.answered(), f.Logins.answered()
	e.TwoBytesPerS, e.TwoBusyCores = f.Transfers.Twice.BytesPerSecond, f.Transfers.Twice.BusyCores
	what, _, _ := limits.Judge(record.Upload, e)
	return what == record.LimitWindow
}

// Hidden says why the speed of transfers, or its limit over a long path, is not known; "" where it
// is.
func (f *Facts) Hidden() string {
	switch e := f.Transfers.Present; {
	case e.BytesPerSecond == 0:
		return "No transfer could be measured."
	case f.Logins.answered() > time.Millisecond && e.Crowded() && len(window(f)) == 0:
		return "This machine was too busy to find out what limits transfers."
	}
	return ""
}

// otherCipher returns an offered cipher without AES if the present one is AES, which needs
// hardware, or an old cipher.
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

// transfer uploads over some connections at once, and returns the bytes of all, and the first one's
// processor time. A failed transfer gives nothing.
func (p *Patient) transfer(ctx context.Context, connections int, o transfer.Options, how string) Transfer {
	p.Progress("a short transfer" + how)
	spawner := proc.NewSpawner()
	defer spawner.Close()
	b := &transfer.Ground{
		Runner: transfer.Runner{Bed: p.Bed, Spawner: spawner},
		Here:   &transfer.Files{Directory: p.Dir, Random: true}, Ticket: p.ticket,
	}
	o.Direction = record.Upload
	e, err := b.Watch(ctx, o, connections, trips*roundTrip(p.facts))
	if err != nil || e.ClientShare == nil || e.BytesPerSecond == 0 {
		return Transfer{}
	}
	p.made += connections
	return Transfer{e, *e.ClientShare * float64(time.Second) / e.BytesPerSecond}
}
