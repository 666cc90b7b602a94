package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Numbers of logins and copies.
const (
	someLogins     = 4  // that follow each other between two rounds
	overheadTrials = 3  // copies of one byte
	leastLogins    = 5  // of a key exchange, however short the time is
	maxLogins      = 40 // of a key exchange, unless a precision asks for more
	usualLogin     = 150 * time.Millisecond
	smoothing      = 0.15 // weight of the newest login in the duration of one
)

// logins plans the logins of every key exchange, in turn, and copies that show the cost beyond
// login and transfer.
type logins struct {
	design
	planned map[string]int // handed out and not failed, by offered name of the fold
	failed  map[string]int
	logs    map[string][]float64
	spent   time.Duration
	typical time.Duration
	copies  int // of one byte, planned
	taken   int // times that some were
}

// newLogins plans sound key exchanges first: a short time leaves out the weak ones.
func newLogins(d design) logins {
	d.space.Kex = alg.SoundFirst(alg.Kex, d.space.Kex)
	return logins{design: d, planned: map[string]int{}, failed: map[string]int{}, logs: map[string][]float64{}, typical: usualLogin}
}

// loginCiphers and loginMACs are preferred by logins. They are fixed for all logins, because a
// Diffie-Hellman group exchange sizes its group by the cipher's key (RFC 4419; OpenSSH
// kex.c:dh_estimate).
var (
	loginCiphers = []string{"aes128-ctr", "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes256-ctr"}
	loginMACs    = []string{"hmac-sha2-256", "hmac-sha2-256-etm@openssh.com", "umac-64@openssh.com", "hmac-sha1"}
)

// login returns the trial that measures a key exchange.
func (l *logins) login(kex string) record.Trial {
	mac := firstOf(l.Offer.MACs, loginMACs)
	for _, cipher := range slices.Concat(loginCiphers, l.Offer.Ciphers) {
		if slices.Contains(l.Offer.Ciphers, cipher) && (alg.IsAEAD(cipher) || mac != "") {
			want := alg.NewSuite(cipher, mac, "")
			want.Kex = kex
			return record.Trial{Want: want, Workload: record.Login}
		}
	}
	return record.Trial{Want: alg.Suite{Kex: kex}, Workload: record.Login}
}

// overhead returns the trial that shows the cost of a copy beyond its login and its transfer: the
// start and the end of the program at the other end.
func (l *logins) overhead() record.Trial {
	cell := l.reference()
	want := alg.Suite{Cipher: cell.Cipher, MAC: cell.MAC, Kex: l.bulkKex}
	return record.Trial{Want: want, Workload: record.Copy, Direction: l.Directions[0], SizeBytes: 1, Role: record.RoleOverhead}
}

// some returns the logins that follow a round: none while they have had their share of the time,
// unless the remaining time would not be enough for all.
func (l *logins) some(round int, elapsed, left time.Duration) []record.Trial {
	if l.missing() == 0 && float64(l.spent) >= loginShare*float64(elapsed) {
		return nil
	}
	need := float64(l.missing()) * float64(l.typical)
	if float64(l.spent) >= loginShare*float64(elapsed) && need < float64(left)/3 {
		return nil
	}
	return l.take(someLogins, round)
}

// counted returns the logins of a round if the user sets the number of rounds.
func (l *logins) counted(round int) []record.Trial {
	return l.take(l.perRound()*len(l.space.Kex), round)
}

// perRound is how often each key exchange logs in in such a round, so that all rounds together have
// enough.
func (l *logins) perRound() int {
	return (leastLogins + max(1, l.Rounds) - 1) / max(1, l.Rounds)
}

// take returns n logins of the key exchanges that have fewest, and now and then a pair under two
// names of one, or a copy.
func (l *logins) take(n, round int) []record.Trial {
	var out []record.Trial
	if l.Server != record.ServerRemote && l.copies < overheadTrials {
		l.copies++
		out = append(out, l.overhead())
	}
	if l.taken++; n > 1 && l.taken%3 == 0 {
		out = append(out, l.aliases(round)...)
	}
	for range n {
		names := slices.DeleteFunc(slices.Clone(l.space.Kex), func(kex string) bool { return l.dead(kex) || l.planned[kex] >= l.most() })
		if len(names) == 0 {
			break
		}
		kex := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(l.planned[a], l.planned[b]) })
		l.planned[kex]++
		out = append(out, l.login(kex))
	}
	for i := range out {
		out[i].Round = round
	}
	return out
}

// most is the number of logins of a key exchange that are worth their time, unless a precision
// requires more.
func (l *logins) most() int {
	if l.Precision > 0 {
		return math.MaxInt
	}
	return maxLogins
}

// aliases returns an A/A pair of logins: one key exchange under two of its names.
func (l *logins) aliases(round int) []record.Trial {
	var names [][2]string
	for _, kex := range l.space.Kex {
		for _, alias := range l.space.Alias[kex] {
			names = append(names, [2]string{kex, alias})
		}
	}
	if len(names) == 0 {
		return nil
	}
	pair := names[l.taken/3%len(names)]
	if l.dead(pair[0]) || l.planned[pair[0]] >= l.most() {
		return nil
	}
	l.planned[pair[0]] += 2
	a := l.login(pair[0])
	a.Role, a.Pair = record.RoleControl, round
	b := a
	b.Offered = alg.Suite{Cipher: a.Want.Cipher, MAC: a.Want.MAC, Kex: pair[1]}
	return []record.Trial{a, b}
}

// dead reports whether a key exchange only ever failed.
func (l *logins) dead(kex string) bool { return len(l.logs[kex]) == 0 && l.failed[kex] >= maxAttempts }

// missing counts the logins until every key exchange has enough.
func (l *logins) missing() int {
	missing := 0
	for _, kex := range l.space.Kex {
		if !l.dead(kex) {
			missing += max(0, leastLogins-l.planned[kex])
		}
	}
	return missing
}

// left reports whether there is a login to be made.
func (l *logins) left() bool { return l.missing() > 0 }

// observe records a login or a copy.
func (l *logins) observe(t record.Trial, sample record.Sample) {
	l.spent += sample.ElapsedNS
	if t.Workload != record.Login {
		return
	}
	kex := t.Want.Kex
	switch {
	case record.Result{Trial: t, Sample: sample}.Usable():
		l.logs[kex] = append(l.logs[kex], math.Log(float64(sample.Phases.LoginNS)))
		l.planned[kex] = max(l.planned[kex], len(l.logs[kex]))
		l.typical += time.Duration(smoothing * float64(sample.ElapsedNS-l.typical))
	default:
		l.planned[kex] = max(0, l.planned[kex]-1)
		if !unconnected(sample) && sample.Outcome != record.Aborted {
			l.failed[kex]++
		}
	}
}

// precise reports whether the median login of every key exchange is known to within ± limit.
func (l *logins) precise(limit float64) bool {
	if l.missing() > 0 {
		return false
	}
	for _, logs := range l.logs {
		if len(logs) < stats.MinExact || stats.MedianInterval(logs).Exp().HalfWidth() > limit {
			return false
		}
	}
	return true
}

// done counts the key exchanges with a login.
func (l *logins) done() int { return len(l.logs) }

// neverWorked reports whether every login failed.
func (l *logins) neverWorked() bool { return len(l.logs) == 0 && len(l.failed) > 0 }
