// Package plan decides what to measure next. A plan is pure: it has no clock,
// no I/O and no randomness but its seed, so the same history leads to the same
// next trial. It hands out trials (Next), learns from samples (Observe), and
// always ends. A file is resumed by replaying its trials and samples through
// Observe before the first Next.
package plan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Spec says what is to be ranked and how much effort is allowed. The zero
// value of a field means its documented default.
type Spec struct {
	Space      alg.Space          // what both sides share, folded
	Directions []record.Direction // default: upload
	Seed       uint64
	Budget     time.Duration // measuring time; 0: none
	Precision  float64       // Sequential: stop when all 95 % intervals are within ± this many percent; 0: never
	Rounds     int           // Blocks: complete blocks; 0: until the budget ends
	Logins     int           // logins per key exchange at least; default 5
	Cores      int           // that client and server may use together; 0: unknown
	SizeBytes  unit.Bytes    // Exhaustive: bytes of each copy
	Runs       int           // Exhaustive: copies of each combination; default 1
	BulkOnly   bool          // no logins
	LoginOnly  bool          // no transfers
	Overhead   bool          // Sequential: measure what a copy takes beside login and transfer

	Present alg.Suite // sittings: cipher and MAC that are negotiated today; zero if unknown

	BulkKex    string        // key exchange of all transfers; default: the cheapest usual one
	LoginSuite alg.Suite     // cipher and MAC of all logins; default: aes128-ctr with a common MAC
	SegmentNS  time.Duration // length of a timed segment; default 50 ms
	Segments   int           // timed segments of a transfer; default 3

	TransferNS time.Duration // expected time of a transfer; default 400 ms, learnt from samples
	LoginNS    time.Duration // expected time of a login; default 150 ms, learnt from samples
}

// Defaults of a Spec.
const (
	defaultLogins   = 5
	defaultSegment  = 50 * time.Millisecond
	defaultSegments = 3
	defaultTransfer = 400 * time.Millisecond
	defaultLogin    = 150 * time.Millisecond
	defaultCopyRate = 200e6 // bytes per second
	defaultBudget   = 90 * time.Second
)

// ErrNothing says that a spec leaves nothing to measure.
var ErrNothing = errors.New("nothing to measure: no cipher, MAC or key exchange is left; allow more algorithms")

// normal returns the spec with its defaults filled in, or what is wrong.
func (s Spec) normal() (Spec, error) {
	if len(s.Directions) == 0 {
		s.Directions = []record.Direction{record.Upload}
	}
	s.Logins = defaultTo(s.Logins, defaultLogins)
	s.SegmentNS = defaultTo(s.SegmentNS, defaultSegment)
	s.Segments = defaultTo(s.Segments, defaultSegments)
	s.TransferNS = defaultTo(s.TransferNS, defaultTransfer)
	s.LoginNS = defaultTo(s.LoginNS, defaultLogin)
	s.Runs = defaultTo(s.Runs, 1)
	if s.BulkKex == "" {
		s.BulkKex = firstOf(s.Space.Offer.Kex, bulkKexes)
	}
	if s.LoginSuite == (alg.Suite{}) {
		s.LoginSuite = loginSuite(s.Space)
	}
	switch {
	case s.Budget < 0 || s.Precision < 0 || s.Rounds < 0:
		return s, fmt.Errorf("budget, precision and rounds may not be negative")
	case s.BulkKex == "" || len(s.Space.Bulk) == 0:
		return s, ErrNothing
	}
	return s, nil
}

// bulkKexes are the key exchanges that a transfer prefers, cheap and common
// first: its key exchange costs time but does not act on what is measured.
var bulkKexes = []string{
	"curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256", "mlkem768x25519-sha256",
	"sntrup761x25519-sha512", "sntrup761x25519-sha512@openssh.com",
}

// loginCiphers and loginMACs are what a login prefers. They are fixed for all
// logins, because a Diffie-Hellman group exchange sizes its group by the
// cipher's key (RFC 4419; OpenSSH kex.c:dh_estimate).
var (
	loginCiphers = []string{"aes128-ctr", "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes256-ctr"}
	loginMACs    = []string{"hmac-sha2-256", "hmac-sha2-256-etm@openssh.com", "umac-64@openssh.com", "hmac-sha1"}
)

// loginSuite picks one cipher and MAC from the space.
func loginSuite(s alg.Space) alg.Suite {
	for _, cipher := range append(slices.Clone(loginCiphers), s.Offer.Ciphers...) {
		if !slices.Contains(s.Offer.Ciphers, cipher) {
			continue
		}
		mac := firstOf(s.Offer.MACs, loginMACs)
		if alg.IsAEAD(cipher) || mac != "" {
			return alg.NewSuite(cipher, mac, "")
		}
	}
	return alg.Suite{}
}

// firstOf returns the first wanted name that is offered, or the first offered.
func firstOf(offered, wanted []string) string {
	for _, name := range wanted {
		if slices.Contains(offered, name) {
			return name
		}
	}
	if len(offered) > 0 {
		return offered[0]
	}
	return ""
}

func defaultTo[T int | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}

// transfer returns the trial that measures a bulk cell.
func (s Spec) transfer(cell alg.Suite, d record.Direction) record.Trial {
	return record.Trial{
		Want:     alg.Suite{Cipher: cell.Cipher, MAC: cell.MAC, Kex: s.BulkKex},
		Workload: record.Transfer, Direction: d, SegmentNS: s.SegmentNS, Segments: s.Segments,
	}
}

// login returns the trial that measures a key exchange.
func (s Spec) login(kex string) record.Trial {
	want := s.LoginSuite
	want.Kex = kex
	return record.Trial{Want: want, Workload: record.Login}
}

// overhead returns the trial that shows what a copy takes beside its login and
// its transfer: the start of the program at the other end, and the end of it.
func (s Spec) overhead() record.Trial {
	t := s.transfer(s.reference(), s.Directions[0])
	return record.Trial{Want: t.Want, Workload: record.Copy, Direction: t.Direction, SizeBytes: 1, Role: record.RoleOverhead}
}

// random is the generator of one block: blocks can be drawn in any order, as
// a resumed plan does.
func (s Spec) random(block int) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, uint64(block))) }

// reference returns the cell that every block holds: fast, everywhere, and
// preferably AEAD, so that it can be asked for under several names.
func (s Spec) reference() alg.Suite {
	for _, cipher := range []string{"aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr"} {
		if i := slices.IndexFunc(s.Space.Bulk, func(c alg.Suite) bool { return c.Cipher == cipher }); i >= 0 {
			return s.Space.Bulk[i]
		}
	}
	return s.Space.Bulk[0]
}
