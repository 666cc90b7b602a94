package rank_test

import (
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// A slow cipher's client works on more than what arrives within a segment: its
// cost is per byte that it sent, as that of its cell is.
func TestMomentsDivideByTheClientsBytes(t *testing.T) {
	suite := alg.Suite{Cipher: "3des-cbc", MAC: "hmac-sha1"}
	cpu := 80 * time.Millisecond
	f := &record.File{
		Trials: map[int]record.Trial{1: {ID: 1, Want: suite, Workload: record.Transfer, Direction: record.Upload}},
		Samples: []record.Sample{{Trial: 1, Got: suite, Outcome: record.OK, Segments: []record.Segment{
			{WallNS: 100 * time.Millisecond, Bytes: 1e6, ClientBytes: 2e6, ClientCPUNS: &cpu},
		}}},
	}
	r := &rank.Ranking{Bulk: []rank.Cell{{
		Suite: suite, Direction: record.Upload, Throughput: &rank.Quantity{Value: 1e7}, Client: &rank.Quantity{Value: 40},
	}}}
	if got := r.Moments(f, 10); len(got) != 1 || got[0].Client != 1 || got[0].Throughput != 1 {
		t.Errorf("%+v, want one at 1 and 1", got)
	}
}
