package alg

import (
	"slices"
	"testing"
)

// debian12 is what `ssh -Q` of OpenSSH 9.2p1 lists.
var debian12 = Offer{
	Ciphers: []string{"3des-cbc", "aes128-cbc", "aes192-cbc", "aes256-cbc", "aes128-ctr", "aes192-ctr", "aes256-ctr",
		"aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"},
	MACs: []string{"hmac-sha1", "hmac-sha1-96", "hmac-sha2-256", "hmac-sha2-512", "hmac-md5", "hmac-md5-96",
		"umac-64@openssh.com", "umac-128@openssh.com", "hmac-sha1-etm@openssh.com", "hmac-sha1-96-etm@openssh.com",
		"hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-md5-etm@openssh.com",
		"hmac-md5-96-etm@openssh.com", "umac-64-etm@openssh.com", "umac-128-etm@openssh.com"},
	Kex: []string{"diffie-hellman-group1-sha1", "diffie-hellman-group14-sha1", "diffie-hellman-group14-sha256",
		"diffie-hellman-group16-sha512", "diffie-hellman-group18-sha512", "diffie-hellman-group-exchange-sha1",
		"diffie-hellman-group-exchange-sha256", "ecdh-sha2-nistp256", "ecdh-sha2-nistp384", "ecdh-sha2-nistp521",
		"curve25519-sha256", "curve25519-sha256@libssh.org", "sntrup761x25519-sha512", "sntrup761x25519-sha512@openssh.com"},
}

// 10 x 16 x 14 = 2240; 3 AEAD ciphers + 7 x 16 = 115; 14 - 2 aliases = 12.
func TestFoldDebian12(t *testing.T) {
	space := Fold(debian12)
	if got, want := space.Combinations(), (Combinations{2240, 115, 12}); got != want {
		t.Errorf("combinations = %+v, want %+v", got, want)
	}
	if got := space.Alias["curve25519-sha256"]; !slices.Equal(got, []string{"curve25519-sha256@libssh.org"}) {
		t.Errorf("aliases of curve25519-sha256 = %q", got)
	}
}

func TestIntersectKeepsClientOrderAndDropsSignals(t *testing.T) {
	server := Offer{Ciphers: []string{"aes256-ctr", "aes128-ctr"}, Kex: []string{"curve25519-sha256", "kex-strict-s-v00@openssh.com"}}
	client := Offer{Ciphers: []string{"aes128-ctr", "3des-cbc", "aes256-ctr"}, Kex: []string{"kex-strict-s-v00@openssh.com", "curve25519-sha256"}}
	got := client.Intersect(server)
	if !slices.Equal(got.Ciphers, []string{"aes128-ctr", "aes256-ctr"}) || !slices.Equal(got.Kex, []string{"curve25519-sha256"}) {
		t.Errorf("intersection = %+v", got)
	}
	if got := client.Without(server, Cipher); !slices.Equal(got, []string{"3des-cbc"}) {
		t.Errorf("only at the client: %q", got)
	}
}

func TestSuiteStatus(t *testing.T) {
	for _, test := range []struct {
		suite Suite
		want  Status
	}{
		{NewSuite("aes128-gcm@openssh.com", "hmac-md5", ""), Strong},
		{NewSuite("3des-cbc", "hmac-sha2-256-etm@openssh.com", ""), Broken},
		{NewSuite("rot13", "", ""), ""},
	} {
		if test.want == Broken { // the table decides between weak and broken; both are unsafe
			if got := test.suite.Status(); got != Weak && got != Broken {
				t.Errorf("%s: status %q, want weak or broken", test.suite, got)
			}
			continue
		}
		if got := test.suite.Status(); got != test.want {
			t.Errorf("%s: status %q, want %q", test.suite, got, test.want)
		}
	}
}

// The ciphers of the old articles can be measured again, and stay marked broken.
func TestOldCiphersAreBroken(t *testing.T) {
	for _, name := range []string{"arcfour", "arcfour128", "arcfour256", "blowfish-cbc", "cast128-cbc"} {
		if a, known := Lookup(Cipher, name); !known || a.Status != Broken || a.Reason == "" {
			t.Errorf("%s is %q: %q", name, a.Status, a.Reason)
		}
	}
}

func TestPolicies(t *testing.T) {
	if n := len(Policies()); n != 22 {
		t.Errorf("%d policies, want 21 and modern", n)
	}
	p, err := LookupPolicy("openssh-default")
	if err != nil || p.Name != "openssh-default-10.5" {
		t.Errorf("alias openssh-default: %q, %v", p.Name, err)
	}
	if _, err := LookupPolicy("nsa"); err == nil {
		t.Error("unknown policy: want an error")
	}
	m, _ := LookupPolicy("modern")
	if m.Allows(Cipher, "3des-cbc") || !m.Allows(Cipher, "aes128-gcm@openssh.com") || !m.Allows(Kex, "curve25519-sha256@libssh.org") {
		t.Error("modern allows the wrong names")
	}
	cnsa, _ := LookupPolicy("cnsa-2.0")
	if cnsa.Allows(MAC, "hmac-sha2-256") {
		t.Error("cnsa-2.0 has an empty MAC list and allows none")
	}
}

func TestMatch(t *testing.T) {
	if !Match(nil, "x") || !Match([]string{"aes*-ctr"}, "aes128-ctr") || Match([]string{"aes*-ctr"}, "aes128-cbc") {
		t.Error("glob matching is wrong")
	}
}

func TestPrimitive(t *testing.T) {
	for mac, want := range map[string]string{
		"hmac-sha1": "hmac-sha1", "hmac-sha1-96": "hmac-sha1", "hmac-sha1-96-etm@openssh.com": "hmac-sha1", "hmac-sha2-256-etm@openssh.com": "hmac-sha2-256",
		"umac-64@openssh.com": "umac-64", "umac-128-etm@openssh.com": "umac-128", "": "",
	} {
		if got := Primitive(mac); got != want {
			t.Errorf("Primitive(%q) = %q, want %q", mac, got, want)
		}
	}
}

func TestSoundFirst(t *testing.T) {
	names := []string{"diffie-hellman-group1-sha1", "diffie-hellman-group14-sha1", "ecdh-sha2-nistp256", "curve25519-sha256", "made-up"}
	want := []string{"ecdh-sha2-nistp256", "curve25519-sha256", "diffie-hellman-group14-sha1", "diffie-hellman-group1-sha1", "made-up"}
	if got := SoundFirst(Kex, names); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}
