package advise

import (
	"fmt"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Present is what the client negotiates without being told anything.
type Present struct {
	Suite   alg.Suite   // empty: unknown
	Default bool        // what OpenSSH of this version does unless configured
	Assumed bool        // not recorded: nobody asked the user's configuration
	Option  int         // its place among the Options; -1: the policy does not allow it, or it was not measured
	Refused bool        // the policy does not allow it
	Cells   []rank.Cell // of it, one for each direction; none where it was not measured
}

// cells finds them.
func (p *Present) cells(r *rank.Ranking, directions []record.Direction) {
	for _, d := range directions {
		if cell, ok := r.Find(p.Suite, d); ok && p.Suite.Cipher != "" && r.Deciding(cell) != nil {
			p.Cells = append(p.Cells, cell)
		}
	}
	if len(p.Cells) < len(directions) {
		p.Cells = nil
	}
}

// presentOf is what is negotiated now: what the caller knows, else what the run
// found, else what OpenSSH of the client's version does by default.
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

// defaults are the first names of OpenSSH's own lists from a version on, latest
// first (myproposal.h of its releases; Debian and others keep them).
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

// usual is what a client of a version, such as "OpenSSH_9.2p1 Debian-2", picks
// unless configured; empty where that is not known, or a side has left it out.
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

// Prepends reports whether a program, such as "OpenSSH_7.4p1 Debian-10", knows
// lists that begin with ^. They came with OpenSSH 8.1 (its release notes); what is
// no OpenSSH is taken to know them, for it says what it does not know.
func Prepends(program string) bool {
	return !since(program, 0, 0) || since(program, 8, 1)
}
