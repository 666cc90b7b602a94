package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/model/sim"
	"sshpace/internal/plan"
	"sshpace/internal/rank"
	"sshpace/internal/report"
)

func ranking(t *testing.T) *rank.Ranking {
	t.Helper()
	p, err := plan.Blocks(plan.Spec{Space: alg.Fold(sim.Offer()), Seed: 1, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &sim.Machine{Noise: 0.03, WallNoise: 0.05, Connection: 0.01}
	f, _ := m.Collect(bench.Campaign{Offer: sim.Offer(), Target: "loopback"}, p)
	r, err := rank.Of(f, rank.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTextFitsATerminal(t *testing.T) {
	var out bytes.Buffer
	if err := report.Text(&out, ranking(t)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	t.Log(out.String())
}

func TestJSONHoldsEveryCell(t *testing.T) {
	var out bytes.Buffer
	if err := report.JSON(&out, ranking(t)); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Schema       string
		Combinations struct{ Total, Bulk, Kex int }
		Bulk         []struct {
			Client struct{ Value, Lo, Hi float64 } `json:"client_ns_per_byte"`
		}
		Kex []struct{ Name string }
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "sshpace.report/1" || doc.Combinations.Total != 2240 || len(doc.Bulk) != 115 || len(doc.Kex) != 12 {
		t.Errorf("schema %q, %+v, %d cells, %d key exchanges", doc.Schema, doc.Combinations, len(doc.Bulk), len(doc.Kex))
	}
	for _, c := range doc.Bulk {
		if c.Client.Value <= 0 || c.Client.Lo > c.Client.Value || c.Client.Hi < c.Client.Value {
			t.Errorf("no sane interval: %+v", c)
		}
	}
}
