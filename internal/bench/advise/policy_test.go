package advise_test

import (
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/advise"
)

func FuzzParsePolicy(f *testing.F) {
	f.Add(`cipher = ["aes128-ctr"]` + "\nname = \"x\"")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := advise.ParsePolicy(text, "x")
		if err != nil {
			return
		}
		for _, name := range p.Ciphers {
			if _, known := alg.Lookup(alg.Cipher, name); !known {
				t.Errorf("unknown cipher %q was taken", name)
			}
		}
	})
}
