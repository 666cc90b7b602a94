package alg

import (
	"slices"
	"testing"
)

func TestNamed(t *testing.T) {
	names := slices.Concat(debian12.Ciphers, debian12.MACs, debian12.Kex)
	for _, test := range []struct {
		word string
		want []string
	}{
		{"aes128-gcm", []string{"aes128-gcm@openssh.com"}},
		{"aes128-gcm@openssh.com", []string{"aes128-gcm@openssh.com"}},
		{"AES128-CTR", []string{"aes128-ctr"}},
		{"hmac-sha1-etm", []string{"hmac-sha1-etm@openssh.com"}},
		{"curve25519-sha256", []string{"curve25519-sha256"}},
		{"aes*-gcm", []string{"aes128-gcm@openssh.com", "aes256-gcm@openssh.com"}},
		{"umac-*-etm", []string{"umac-64-etm@openssh.com", "umac-128-etm@openssh.com"}},
		{"hmac-sha1", []string{"hmac-sha1"}},
		{"aes", nil},
		{"[", nil},
	} {
		if got := Named(test.word, names); !slices.Equal(got, test.want) {
			t.Errorf("%q means %q, want %q", test.word, got, test.want)
		}
	}
	if got := Named("SNTRUP761x25519-sha512", []string{"sntrup761x25519-sha512@openssh.com"}); len(got) != 1 {
		t.Errorf("the older name of a key exchange: %q", got)
	}
}

func TestWords(t *testing.T) {
	if got, want := Words([]string{"aes128-ctr, aes256-ctr,", "3des-cbc", ""}), []string{"aes128-ctr", "aes256-ctr", "3des-cbc", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
