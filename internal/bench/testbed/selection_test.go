package testbed

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
)

func TestSelection(t *testing.T) {
	client := alg.Offer{
		Ciphers: []string{"aes128-gcm@openssh.com", "aes128-ctr", "3des-cbc", "chacha20-poly1305@openssh.com"},
		MACs:    []string{"hmac-sha2-256", "umac-64@openssh.com"},
		Kex:     []string{"curve25519-sha256", "diffie-hellman-group1-sha1"},
	}
	server := alg.Offer{
		Ciphers: []string{"aes128-gcm@openssh.com", "aes128-ctr", "3des-cbc", "aes256-ctr"},
		MACs:    []string{"hmac-sha2-256", "hmac-sha1"},
		Kex:     []string{"curve25519-sha256", "diffie-hellman-group1-sha1", "ecdh-sha2-nistp256"},
	}
	shared := client.Intersect(server)
	pick := func(kind alg.Kind, patterns ...string) map[alg.Kind][]string {
		return map[alg.Kind][]string{kind: patterns}
	}
	for name, tt := range map[string]struct {
		sel  Selection
		want []string // ciphers left
		err  string
	}{
		"everything":        {Selection{}, shared.Ciphers, ""},
		"name":              {Selection{Patterns: pick(alg.Cipher, "aes128-ctr")}, []string{"aes128-ctr"}, ""},
		"glob":              {Selection{Patterns: pick(alg.Cipher, "aes128-*")}, []string{"aes128-gcm@openssh.com", "aes128-ctr"}, ""},
		"two":               {Selection{Patterns: pick(alg.Cipher, "3des-cbc", "*-ctr")}, []string{"aes128-ctr", "3des-cbc"}, ""},
		"policy":            {Selection{Policy: "modern"}, []string{"aes128-gcm@openssh.com", "aes128-ctr"}, ""},
		"only the client":   {Selection{Patterns: pick(alg.Cipher, "chacha20*")}, nil, "the server does not offer it"},
		"only the server":   {Selection{Patterns: pick(alg.MAC, "hmac-sha1")}, nil, "this client was built without it"},
		"neither side":      {Selection{Patterns: pick(alg.Kex, "sntrup761x25519-sha512")}, nil, "neither side has it"},
		"unknown":           {Selection{Patterns: pick(alg.Cipher, "rot13")}, nil, `unknown cipher "rot13"`},
		"glob of nothing":   {Selection{Patterns: pick(alg.Kex, "zz*")}, nil, `unknown kex "zz*"`},
		"broken glob":       {Selection{Patterns: pick(alg.Cipher, "aes[")}, nil, `unknown cipher "aes["`},
		"empty name":        {Selection{Patterns: pick(alg.Cipher, "")}, nil, `unknown cipher ""`},
		"one of two wrong":  {Selection{Patterns: pick(alg.Cipher, "aes128-ctr", "rot13")}, nil, `unknown cipher "rot13"`},
		"unknown policy":    {Selection{Policy: "nsa"}, nil, `unknown policy "nsa"`},
		"nothing is left":   {Selection{Patterns: pick(alg.Cipher, "3des-cbc"), Policy: "modern"}, nil, "no cipher is left to measure"},
		"no kex is left":    {Selection{Patterns: pick(alg.Kex, "diffie-hellman-group1-sha1"), Policy: "modern"}, nil, "no key exchange is left to measure"},
		"AEAD needs no MAC": {Selection{Patterns: pick(alg.Cipher, "aes128-gcm*")}, []string{"aes128-gcm@openssh.com"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tt.sel.apply(shared, client, server)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Ciphers); diff != "" {
				t.Errorf("ciphers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoMACIsLeft(t *testing.T) {
	o := alg.Offer{Ciphers: []string{"aes128-ctr"}, Kex: []string{"curve25519-sha256"}}
	if err := (Selection{}).checkLeft(o); err == nil || !strings.Contains(err.Error(), "no MAC is left to measure with aes128-ctr") {
		t.Errorf("checkLeft: %v", err)
	}
	o.Ciphers = []string{"aes128-gcm@openssh.com"}
	if err := (Selection{}).checkLeft(o); err != nil {
		t.Errorf("checkLeft of an AEAD cipher: %v", err)
	}
}
