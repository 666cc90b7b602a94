package tidy

import (
	"crypto/dsa" //lint:ignore SA1019 lint must find such keys
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// rsaLine is an RSA key of a length in bits; it need not be a secure one.
func rsaLine(t *testing.T, bits int) string {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(bits-1)))
	if err != nil {
		t.Fatal(err)
	}
	n.SetBit(n, bits-1, 1).SetBit(n, 0, 1)
	key, err := ssh.NewPublicKey(&rsa.PublicKey{N: n, E: 65537})
	if err != nil {
		t.Fatal(err)
	}
	return knownhosts.MarshalKey(key)
}

// dsaLine is a DSA key by the installed ssh-keygen's format.
func dsaLine(t *testing.T) string {
	t.Helper()
	var private dsa.PrivateKey
	if err := dsa.GenerateParameters(&private.Parameters, rand.Reader, dsa.L1024N160); err != nil {
		t.Fatal(err)
	}
	if err := dsa.GenerateKey(&private, rand.Reader); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return knownhosts.MarshalKey(key)
}

func TestFiles(t *testing.T) {
	k := func(n int) string { return sshtest.KeyText(n) }
	hashed := knownhosts.HashName("h")
	file := sshtest.KnownHostsFile(t, strings.Join([]string{
		"a,b " + k(1),                         // 1
		"b " + k(1),                           // 2 duplicate of 1
		"A,c " + k(1),                         // 3 partly new: nothing to say
		"a " + k(2),                           // 4 conflict with 1
		"broken",                              // 5 unreadable
		"*.net,!x.net " + k(3),                // 6
		"www.net " + k(3),                     // 7 shadowed by 6
		"x.net " + k(3),                       // 8 not covered
		"www.net " + k(4),                     // 9
		"*.net,!x.net " + k(3) + " x",         // 10 duplicate of 6
		"d " + dsaLine(t),                     // 11 weak
		"e " + rsaLine(t, 1024),               // 12 weak
		"f " + rsaLine(t, 2048),               // 13 short
		"g " + rsaLine(t, 3072),               // 14
		"@revoked * " + k(5),                  // 15
		"r " + k(5),                           // 16 revoked
		hashed + " " + k(6),                   // 17
		hashed + " " + k(6),                   // 18 duplicate of 17, whoever it is
		knownhosts.HashName("h") + " " + k(6), // 19 duplicate of 17, if h is known
		knownhosts.HashName("h") + " " + k(7), // 20 conflict with 17, if h is known
		"@cert-authority a " + k(8),           // 21
		"@cert-authority a " + k(1),           // 22 an authority with a host's key is no duplicate
		"a ecdsa-sha2-nistp256 AAAAbb",        // 23 unreadable
		"i,i " + k(9),                         // 24 no duplicate of itself
	}, "\n"))
	base := []string{
		"0 mixed-hashing", "2 duplicate 1", "4 conflict 1", "5 unreadable", "7 shadowed 6", "10 duplicate 6", "11 weak-key", "12 weak-key", "13 short-key",
		"16 revoked-key 15", "18 duplicate 17",
	}
	for _, c := range []struct {
		names []string
		want  []string
	}{
		{nil, append(base[:len(base):len(base)], "23 unreadable")},
		{[]string{"H", "zz"}, append(base[:len(base):len(base)], "19 duplicate 17", "20 conflict 17", "23 unreadable")},
	} {
		if diff := cmp.Diff(c.want, short(Lint(t.Context(), index.Open(file), c.names), file)); diff != "" {
			t.Errorf("with names %v:\n%s", c.names, diff)
		}
	}
}

// short writes findings as "line kind other".
func short(findings []Finding, file string) []string {
	var out []string
	for _, f := range findings {
		other := strings.TrimPrefix(f.Other, file+":")
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s", f.Line, f.Kind, other)))
	}
	return out
}

func TestLintAcrossFiles(t *testing.T) {
	user, system := sshtest.KnownHostsFile(t, "a "+sshtest.KeyText(1)+"\n"), sshtest.KnownHostsFile(t, "a "+sshtest.KeyText(1)+"\n@revoked a "+sshtest.KeyText(1)+"\n")
	var got []string
	for _, f := range Lint(t.Context(), index.Open(user, system, t.TempDir()), nil) {
		got = append(got, fmt.Sprintf("%s:%d %s %s", f.File, f.Line, f.Kind, f.Other))
	}
	want := []string{
		":0 unreadable-file ",
		user + ":1 revoked-key " + system + ":2",
		system + ":1 revoked-key " + system + ":2",
		system + ":1 duplicate " + user + ":1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLintCleanFile(t *testing.T) {
	if findings := Lint(t.Context(), index.Open(sshtest.KnownHostsFile(t, sshtest.FleetFile(20, true))), []string{sshtest.FleetHost(1)}); len(findings) != 0 {
		t.Errorf("findings in a clean file: %+v", findings)
	}
}
