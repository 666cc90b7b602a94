//go:build linux

package programs

import (
	"testing"

	"sshpace/internal/base/alg"
)

// What a pair cannot agree on is named, and whose fault it is.
func TestLacking(t *testing.T) {
	server := alg.Offer{Ciphers: []string{"aes128-ctr"}, Kex: []string{"curve25519-sha256"}, MACs: []string{"hmac-sha2-256"}}
	for _, c := range []struct {
		common alg.Offer
		cipher string
		want   string
	}{
		{alg.Offer{}, "blowfish-cbc", "the server has no blowfish-cbc"},
		{alg.Offer{}, "aes128-ctr", "the client has no aes128-ctr"},
		{alg.Offer{}, "", "no cipher in common: the server has aes128-ctr"},
		{alg.Offer{Ciphers: server.Ciphers}, "", "no kex in common: the server has curve25519-sha256"},
		{alg.Offer{Ciphers: server.Ciphers, Kex: server.Kex}, "", "no mac in common: the server has hmac-sha2-256"},
	} {
		if got := lacking(c.common, server, alg.Suite{Cipher: c.cipher}).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
