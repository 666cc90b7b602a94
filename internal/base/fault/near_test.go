package fault_test

import (
	"slices"
	"testing"

	"sshpace/internal/base/fault"
)

func TestNames(t *testing.T) {
	commands := []string{"bench", "report", "compare", "advise", "known-hosts"}
	ciphers := []string{"aes128-ctr", "aes256-ctr", "aes128-cbc", "chacha20-poly1305@openssh.com"}
	for _, test := range []struct {
		typed string
		names []string
		want  []string
	}{
		{"bnech", commands, []string{"bench"}},
		{"Reprot", commands, []string{"report"}},
		{"knownhosts", commands, []string{"known-hosts"}},
		{"bench", commands, []string{"bench"}},
		{"nonsense", commands, nil},
		{"", commands, nil},
		{"aes-128-ctr", ciphers, []string{"aes128-ctr", "aes128-cbc"}},
		{"chacha20", ciphers, []string{"chacha20-poly1305@openssh.com"}},
		{"aes128-gmc", []string{"aes128-cbc", "aes128-ctr", "aes128-gcm@openssh.com"}, []string{"aes128-gcm@openssh.com", "aes128-cbc", "aes128-ctr"}},
		{"é", ciphers, nil},
	} {
		if got := fault.NearNames(test.typed, test.names); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.typed, got, test.want)
		}
	}
}
