//go:build linux

package prove

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

// TestMain lets the test's own program be the helper processes.
func TestMain(m *testing.M) {
	benchtest.Serve()
	os.Exit(m.Run())
}

// BenchmarkEqualAndPlanted asks of the real ssh what TestPlantedDifference asks of a
// simulation: two names of one computation, as they are and with 5 % planted in what was
// measured. It reports how often the first were told apart and the second found.
//
//	go test -bench EqualAndPlanted -benchtime 40x -timeout 1h ./internal/bench/prove
func BenchmarkEqualAndPlanted(b *testing.B) {
	dir, _ := benchtest.Workdir(b, safedir.WorkdirParams{})
	bed, err := testbed.Open(b.Context(), testbed.Params{
		Engine: record.EngineOpenSSH, Data: "zero", Connect: 20 * time.Second, Dir: dir, Everything: true,
		Helper: helper.Line,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer bed.Close()
	suites := [2]alg.Suite{
		{Cipher: "aes128-ctr", MAC: "hmac-sha1-etm@openssh.com", Kex: "curve25519-sha256"},
		{Cipher: "aes128-ctr", MAC: "hmac-sha1-96-etm@openssh.com", Kex: "curve25519-sha256"},
	}
	var falsely, found, id int
	for b.Loop() {
		id++
		p := newPair(bed.Driver, courseWith(bed.Kind), suites, record.Upload, 1000*id)
		method := &method{name: "raw upload", direct: true}
		for range DefaultRounds {
			got, sample, err := p.round(b.Context())
			if err != nil || sample.Outcome != record.OK {
				b.Fatal(sample, err)
			}
			method.add(got)
		}
		if strings.ContainsAny(said(method, 0), "<>") {
			falsely++
		}
		if strings.Contains(said(method, math.Log(1.05)), ">") {
			found++
		}
	}
	b.ReportMetric(float64(falsely), "told-apart")
	b.ReportMetric(float64(found), "found")
}

// said is what is judged of speed and of cost when the advised choice is faster and cheaper by so
// much than it is: > for better, < for worse.
func said(m *method, planted float64) string {
	better := func(logs []float64) string {
		moved := make([]float64, len(logs))
		for i, x := range logs {
			moved[i] = x + planted
		}
		return judged(stats.HodgesLehmann(moved).Exp(), ">", "<")
	}
	return better(m.speeds) + better(m.savings)
}
