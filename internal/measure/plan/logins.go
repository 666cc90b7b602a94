package plan

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// loginsFor returns the logins that go with the transfers of block n: each key
// exchange once in the first, later those that have the fewest, so many that all
// have Spec.Logins in time.
func (s *sequential) loginsFor(n int, transfers []record.Trial, left time.Duration, random *rand.Rand) []record.Trial {
	if n == 1 {
		var trials []record.Trial
		for _, kex := range s.spec.Space.Kex {
			trials = append(trials, s.spec.login(kex))
		}
		return trials
	}
	blockTime := s.times.sum(transfers)
	count := int(math.Round(loginShare * float64(blockTime) / float64(max(1, s.times.login))))
	if left > 0 {
		blocks := max(1, int(left/max(1, blockTime*6/5)))
		count = max(count, (s.loginsMissing()+blocks-1)/blocks)
	}
	trials := s.aliases(n)
	for _, t := range trials {
		s.planned(t, 1)
	}
	names := slices.DeleteFunc(slices.Clone(s.spec.Space.Kex), s.givenUp)
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for range max(0, count-len(trials)) {
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(s.logins[a], s.logins[b]) })
		if len(names) == 0 || s.logins[names[0]] >= s.mostLogins() {
			break
		}
		kex := names[0]
		trials = append(trials, s.spec.login(kex))
		s.planned(trials[len(trials)-1], 1)
	}
	for _, t := range trials {
		s.planned(t, -1)
	}
	return trials
}

// givenUp reports whether a key exchange only ever failed.
func (s *sequential) givenUp(kex string) bool {
	return s.logins[kex] == 0 && s.refused[kex] >= maxAttempts
}

// planned counts a login ahead while a block is drawn.
func (s *sequential) planned(t record.Trial, n int) { s.logins[t.Want.Kex] += n }

// loginsMissing is how many logins are left to reach Spec.Logins everywhere.
func (s *sequential) loginsMissing() int {
	missing := 0
	for _, kex := range s.spec.Space.Kex {
		if !s.givenUp(kex) {
			missing += max(0, s.spec.Logins-s.logins[kex])
		}
	}
	return missing
}

// aliases is an A/A pair of logins: one key exchange under two of its names.
func (s *sequential) aliases(n int) []record.Trial {
	var pairs [][2]string
	for _, kex := range s.spec.Space.Kex {
		for _, alias := range s.spec.Space.Alias[kex] {
			pairs = append(pairs, [2]string{kex, alias})
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	names := pairs[n%len(pairs)]
	if s.logins[names[0]] >= s.mostLogins() {
		return nil
	}
	a := s.spec.login(names[0])
	a.Role, a.Pair = record.RoleControl, n
	b := a
	b.Offered = alg.Suite{Cipher: a.Want.Cipher, MAC: a.Want.MAC, Kex: names[1]}
	return []record.Trial{a, b}
}

// loginBlock is a block of a plan without transfers: every key exchange once,
// and an A/A pair.
func (s *sequential) loginBlock(random *rand.Rand) ([]record.Trial, Ending) {
	s.phase = "logging in"
	if s.loginsMissing() == 0 && s.spec.Precision > 0 && s.loginsPrecise(s.spec.Precision/100) {
		return nil, EndPrecision
	}
	var trials []record.Trial
	for _, kex := range s.spec.Space.Kex {
		if s.logins[kex] < maxTrialsPerCell && !s.givenUp(kex) {
			trials = append(trials, s.spec.login(kex))
		}
	}
	trials = append(trials, s.aliases(random.IntN(1<<20))...)
	random.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	return trials, ""
}

// mostLogins of a key exchange are worth their time, unless a precision asks for
// more.
func (s *sequential) mostLogins() int {
	if s.spec.Precision > 0 {
		return math.MaxInt
	}
	return maxLogins
}

// loginsPrecise reports whether the median login of every key exchange is
// known to within ± limit.
func (s *sequential) loginsPrecise(limit float64) bool {
	if s.loginsMissing() > 0 {
		return false
	}
	for _, logs := range s.loginLogs {
		if len(logs) < stats.MinExact || stats.MedianInterval(logs).Exp().HalfWidth() > limit {
			return false
		}
	}
	return true
}
