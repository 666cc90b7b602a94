//go:build linux

package programs

import (
	"slices"

	"sshpace/internal/base/alg"
)

// swift lists the ciphers that are usually the fastest, with instructions for AES and without:
// pairs are measured with the first that both sides have.
var swift = map[bool][]string{
	true:  {"aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr", "chacha20-poly1305@openssh.com", "aes128-cbc", "aes192-cbc", "aes256-cbc"},
	false: {"chacha20-poly1305@openssh.com", "aes128-ctr", "aes128-gcm@openssh.com", "aes192-ctr", "aes256-ctr", "aes256-gcm@openssh.com", "aes128-cbc", "aes192-cbc", "aes256-cbc"},
}

// swiftMACs lists the MACs that are usually the fastest.
var swiftMACs = []string{
	"umac-64-etm@openssh.com", "umac-64@openssh.com", "umac-128-etm@openssh.com", "umac-128@openssh.com",
	"hmac-sha2-256-etm@openssh.com", "hmac-sha2-256", "hmac-sha1-etm@openssh.com", "hmac-sha1", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-512",
}

// best returns the suite of two sides that is probably the fastest of the safe ones; of the unsafe
// ones where there is nothing else.
func best(common alg.Offer, aes bool) alg.Suite {
	var suite alg.Suite
	suite.Cipher = preferred(alg.Cipher, common.Ciphers, swift[aes])
	if !alg.IsAEAD(suite.Cipher) {
		suite.MAC = preferred(alg.MAC, common.MACs, swiftMACs)
	}
	suite.Kex = preferred(alg.Kex, common.Kex, alg.CheapKex[:2])
	return suite
}

func preferred(kind alg.Kind, names, order []string) string {
	unsafe := func(name string) bool {
		a, known := alg.Lookup(kind, name)
		return !known || a.Pseudo || a.Status == alg.Broken
	}
	for _, name := range order {
		if slices.Contains(names, name) && !unsafe(name) {
			return name
		}
	}
	for _, name := range names {
		if !unsafe(name) {
			return name
		}
	}
	return firstOf(names)
}
