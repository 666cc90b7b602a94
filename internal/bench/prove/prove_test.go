package prove

import (
	"bytes"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
)

// A proof that was stopped after its first round has a ratio and no interval.
func TestProofOfOneRound(t *testing.T) {
	p := &proof{target: "loopback", suites: [2]alg.Suite{{Cipher: "a"}, {Cipher: "b"}}, methods: []*method{{name: "raw upload", direct: true}, {name: "scp upload"}}}
	p.methods[0].add([2]rates{{throughput: 100e6, cost: 2}, {throughput: 235e6, cost: 1}})
	report := func() string {
		var out bytes.Buffer
		p.write(&out)
		return out.String()
	}
	one := report()
	if strings.Contains(one, "x (") || !strings.Contains(one, "2.35x  too few") || !strings.Contains(one, "one round gives no interval") || strings.Contains(one, "login") {
		t.Errorf("one round, and no copy:\n%s", one)
	}
	for range 2 {
		p.methods[0].add([2]rates{{throughput: 100e6}, {throughput: 240e6}})
		p.methods[1].add([2]rates{{throughput: 50e6}, {throughput: 60e6}})
	}
	if more := report(); !strings.Contains(more, "x (2.35-2.40)") || !strings.Contains(more, "3 rounds give no") || !strings.Contains(more, "include the login") {
		t.Errorf("three rounds:\n%s", more)
	}
}
