package advise

import (
	"slices"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
)

// A configuration names the best of what must change, and nothing else.
func TestFirst(t *testing.T) {
	options := func(suites ...alg.Suite) (out []rank.Row) {
		for _, s := range suites {
			out = append(out, rank.Row{Suite: s})
		}
		return out
	}
	const gcm128, gcm256 = "aes128-gcm@openssh.com", "aes256-gcm@openssh.com"
	const umac, etm = "umac-128-etm@openssh.com", "hmac-sha2-256-etm@openssh.com"
	logins := []rank.Exchange{{Name: "curve25519-sha256", Aliases: []string{"curve25519-sha256@libssh.org"}}, {Name: "ecdh-sha2-nistp256"}}
	for name, test := range map[string]struct {
		choice             Choice
		ciphers, macs, kex []string
	}{
		"tied": {choice: Choice{Options: options(alg.NewSuite(gcm128, "", ""), alg.NewSuite(gcm256, "", ""), alg.NewSuite("aes128-ctr", umac, "")), Tied: 2, Present: Present{Option: 2}, Verdict: stats.Better, Gains: []Gain{{}}},
			ciphers: []string{gcm128, gcm256}},
		"with MACs": {choice: Choice{Options: options(alg.NewSuite("aes128-ctr", umac, ""), alg.NewSuite("aes128-ctr", etm, "")), Tied: 2, Present: Present{Option: -1, Refused: true}},
			ciphers: []string{"aes128-ctr"}, macs: []string{umac, etm}},
		"used already":      {choice: Choice{Options: options(alg.NewSuite(gcm128, "", "")), Tied: 1, Verdict: stats.Equal}},
		"cannot be told":    {choice: Choice{Options: options(alg.NewSuite(gcm128, "", ""), alg.NewSuite(gcm256, "", "")), Tied: 1, Present: Present{Option: 1}, Verdict: stats.NotEnough}},
		"not compared":      {choice: Choice{Options: options(alg.NewSuite(gcm128, "", ""), alg.NewSuite(gcm256, "", "")), Tied: 1, Present: Present{Option: -1}}},
		"nothing allowed":   {choice: Choice{Present: Present{Option: -1}}},
		"login not allowed": {choice: Choice{Present: Present{Option: -1}, Logins: Logins{Options: logins, Tied: 1, Forbids: true}}, kex: []string{"curve25519-sha256", "curve25519-sha256@libssh.org"}},
		"login allowed":     {choice: Choice{Present: Present{Option: -1}, Logins: Logins{Options: logins, Tied: 1, Present: 1}}},
	} {
		for kind, want := range map[alg.Kind][]string{alg.Cipher: test.ciphers, alg.MAC: test.macs, alg.Kex: test.kex} {
			if got := test.choice.First(kind); !slices.Equal(got, want) {
				t.Errorf("%s: %s %q, want %q", name, kind, got, want)
			}
		}
	}
}
