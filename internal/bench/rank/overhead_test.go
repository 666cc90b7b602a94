package rank

import (
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Copies of one byte took 141, 146 and 150 ms, a login with the same key exchange under its other
// name 129 ms: 146 - 129 = 17 ms are the overhead.
func TestOverhead(t *testing.T) {
	r := &Ranking{Kex: []Exchange{{Name: "curve25519-sha256", Login: Figure{stats.Estimate{N: 9}, &stats.Interval{Value: 129e6}}}}}
	d := data{good: map[Failure]bool{}}
	for _, elapsed := range []time.Duration{146, 141, 150} {
		d.add(record.Result{
			Trial:  record.Trial{Workload: record.Copy, Role: record.RoleOverhead, SizeBytes: 1, Want: alg.Suite{Kex: "curve25519-sha256@libssh.org"}},
			Sample: record.Sample{Outcome: record.OK, Bytes: 1, ElapsedNS: elapsed * time.Millisecond},
		})
	}
	if got := r.overhead(&d); got != 17e6 {
		t.Errorf("overhead %v ns, want 17e6", got)
	}
	if len(d.copies) != 0 {
		t.Error("an overhead was taken for a copy of the exhaustive run")
	}
	if got := (&Ranking{}).overhead(&d); got != 0 {
		t.Errorf("overhead without logins: %v, want 0", got)
	}
}
