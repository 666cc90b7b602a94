package sshfp

import (
	"net/netip"
	"strings"
	"testing"

	"sshpace/internal/ssh/sshtest"
)

// TestLookup: the records of a validating name server count as with ssh: all of the type must be
// of the key, and they are validated only where the resolver is trusted.
func TestLookup(t *testing.T) {
	key, other := sshtest.Key(1).PublicKey(), sshtest.Key(2).PublicKey()
	records := []string{
		sshtest.SSHFP(t, "localhost.", key), sshtest.SSHFP(t, "both.localhost.", key), sshtest.SSHFP(t, "both.localhost.", other),
		sshtest.SSHFP(t, "rsa.localhost.", sshtest.RSAKey().PublicKey()), sshtest.SSHFP(t, "wrong.localhost.", other),
		"alias.localhost. CNAME localhost.", "sha1.localhost. SSHFP 4 1 " + strings.Repeat("aa", 20), "plain.localhost. A 127.0.0.1",
	}
	for n := range 30 {
		records = append(records, sshtest.SSHFP(t, "many.localhost.", sshtest.Key(n+1).PublicKey()))
	}
	server := sshtest.StartResolver(t, false, records...)
	r := Resolver{Servers: []netip.AddrPort{server}, Trusted: true}
	type answer struct{ has, matches, validated bool }
	for name, want := range map[string]answer{
		"localhost": {true, true, true}, "LOCALHOST.": {true, true, true}, "alias.localhost": {true, true, true},
		"both.localhost": {true, false, true}, "wrong.localhost": {true, false, true}, "many.localhost": {true, false, true},
		"rsa.localhost": {false, false, true}, "sha1.localhost": {false, false, true}, "plain.localhost": {false, false, true},
		"none.localhost": {false, false, true}, "127.0.0.1": {}, "::1": {},
	} {
		for _, trusted := range []bool{true, false} {
			r.Trusted = trusted
			a, err := r.Lookup(t.Context(), name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			has, matches := a.Of(key)
			want.validated = want.validated && trusted
			if got := (answer{has, matches, a.Validated}); got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
	for _, name := range []string{"a..b", strings.Repeat("a", 300)} {
		if a, err := r.Lookup(t.Context(), name); err == nil {
			t.Errorf("%q: %v", name, a)
		}
	}
}

// TestForged: a zone that another key has signed is no answer.
func TestForged(t *testing.T) {
	server := sshtest.StartResolver(t, true, sshtest.SSHFP(t, "localhost.", sshtest.Key(1).PublicKey()))
	r := Resolver{Servers: []netip.AddrPort{server}, Trusted: true}
	if a, err := r.Lookup(t.Context(), "localhost"); err == nil || err.Error() != "look up SSHFP of localhost: the name server answers ServerFailure" {
		t.Errorf("%v %v", a, err)
	}
}

// TestRead: a resolver is trusted only by trust-ad, in the file or in RES_OPTIONS.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		text, options, servers string
		trusted                bool
	}{
		{"", "", "127.0.0.1:53", false},
		{"# options trust-ad\nsearch trust-ad\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\nnameserver x\n", "", "192.0.2.1:53 [fe80::1%eth0]:53", false},
		{"nameserver 127.0.0.53\noptions edns0 trust-ad\noptions rotate\n", "", "127.0.0.53:53", true},
		{"nameserver 192.0.2.1", "timeout:1 trust-ad", "192.0.2.1:53", true},
	} {
		r := read(c.text, c.options)
		var servers []string
		for _, s := range r.Servers {
			servers = append(servers, s.String())
		}
		if got := strings.Join(servers, " "); got != c.servers || r.Trusted != c.trusted {
			t.Errorf("%q %q: %s %v", c.text, c.options, got, r.Trusted)
		}
	}
}
