package prove

import (
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/record"
)

// verdicts are what the usual rounds of turns say of throughput and cost, and how long they would
// have taken.
func verdicts(t *testing.T, m *benchtest.Machine, suites [2]alg.Suite) (speed, cost string, took time.Duration) {
	t.Helper()
	driver := benchtest.NewSitter(m)
	p := newPair(driver, courseWith(""), suites, record.Upload, 1)
	method := &method{name: "raw upload", direct: true}
	for range DefaultRounds {
		got, sample, err := p.round(t.Context())
		if err != nil || sample.Outcome != record.OK {
			t.Fatal(sample, err)
		}
		method.add(got)
	}
	speed = judged(stats.HodgesLehmann(method.speeds).Exp(), "faster", "slower")
	cost = judged(stats.HodgesLehmann(method.savings).Exp(), "less", "more")
	return speed, cost, driver.Elapsed()
}

// A choice that costs 5 % less is found within 20 seconds in 95 % of the tries on a machine with
// neighbors; equal ones never differ.
func TestPlantedDifference(t *testing.T) {
	const tries = 20
	suite := func(mac string) alg.Suite {
		return alg.Suite{Cipher: "aes128-cbc", MAC: mac, Kex: "curve25519-sha256"}
	}
	suites := [2]alg.Suite{suite("hmac-sha1"), suite("hmac-sha1-96")} // the same computation
	found, falsely, first := 0, 0, seedtest.Of(t)
	for seed := first; seed < first+tries; seed++ {
		m := benchtest.Crowded(seed)
		m.Factor = map[alg.Suite]float64{suites[0].Bulk(): 1.05}
		speed, cost, took := verdicts(t, m, suites)
		if took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		if cost == "less" || speed == "faster" {
			found++
		}
		speed, cost, _ = verdicts(t, benchtest.Crowded(1000+seed), suites)
		for _, word := range []string{"faster", "slower", "less", "more"} {
			if strings.Contains(speed+" "+cost, word) {
				falsely++
			}
		}
	}
	if found < tries-4 || falsely > 0 {
		t.Errorf("5 %% found in %d of %d tries, equal choices told apart %d times", found, tries, falsely)
	}
}
