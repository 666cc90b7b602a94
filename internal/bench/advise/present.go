package advise

import (
	"fmt"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Present is the suite that the client negotiates by default.
type Present struct {
	Suite   alg.Suite   // empty: unknown
	Default bool        // default of OpenSSH in this version
	Assumed bool        // not recorded: nobody read the user's configuration
	Option  int         // its place among the Options; -1: the policy does not allow it, or it was not measured
	Refused bool        // the policy does not allow it
	Cells   []rank.Cell // of it, one for each direction; none where it was not measured
}

// presentOf returns the suite that is negotiated now: known, otherwise as the run found, otherwise
// the default of OpenSSH in the client's version.
func presentOf(r *rank.Ranking, known *alg.Suite) Present {
	standard := usual(r.Environment.Client, shared(r.Campaign))
	is := func(s alg.Suite) bool { return standard.Cipher != "" && same(s.Bulk(), standard.Bulk()) }
	switch {
	case known != nil:
		return Present{Suite: *known, Default: is(*known)}
	case r.Campaign.Present.Cipher != "":
		return Present{Suite: r.Campaign.Present, Default: is(r.Campaign.Present)}
	case r.Campaign.Imported != "" || r.Campaign.Engine != record.EngineOpenSSH:
		return Present{}
	}
	return Present{Suite: standard, Default: standard.Cipher != "", Assumed: true}
}

func shared(c record.Campaign) alg.Offer {
	if len(c.Shared.Ciphers) > 0 {
		return c.Shared
	}
	return c.Offer
}

// defaults holds the first names of OpenSSH's own lists from a version on, latest first
// (myproposal.h of its releases; Debian and others keep them).
var defaults = []struct {
	major, minor int
	first        alg.Suite
}{
	{10, 0, alg.Suite{Cipher: "chacha20-poly1305@openssh.com", Kex: "mlkem768x25519-sha256"}},
	{9, 9, alg.Suite{Cipher: "chacha20-poly1305@openssh.com", Kex: "sntrup761x25519-sha512"}},
	{9, 0, alg.Suite{Cipher: "chacha20-poly1305@openssh.com", Kex: "sntrup761x25519-sha512@openssh.com"}},
	{7, 4, alg.Suite{Cipher: "chacha20-poly1305@openssh.com", Kex: "curve25519-sha256"}},
	{6, 9, alg.Suite{Cipher: "chacha20-poly1305@openssh.com", Kex: "curve25519-sha256@libssh.org"}},
}

// usual returns the suite that a client of a version, such as "OpenSSH_9.2p1 Debian-2", picks by
// default; empty where that is unknown, or a side does not have it.
func usual(client string, shared alg.Offer) alg.Suite {
	for _, d := range defaults {
		if !since(client, d.major, d.minor) {
			continue
		}
		if !slices.Contains(shared.Ciphers, d.first.Cipher) {
			return alg.Suite{}
		}
		return d.first
	}
	return alg.Suite{}
}

// since reports whether a program is OpenSSH of a version or a later one.
func since(program string, major, minor int) bool {
	var x, y int
	if _, err := fmt.Sscanf(program, "OpenSSH_%d.%d", &x, &y); err != nil {
		return false
	}
	return x > major || x == major && y >= minor
}

// Prepends reports whether a program, such as "OpenSSH_7.4p1 Debian-10", knows lists that begin
// with ^. They came with OpenSSH 8.1 (its release notes); other programs count as knowing them,
// because they report unknown syntax.
func Prepends(program string) bool {
	return !since(program, 0, 0) || since(program, 8, 1)
}
