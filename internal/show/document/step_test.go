package document

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/plan"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// What is to be copied is never broken: it stands beside its words, or on a line of its own.
func TestStep(t *testing.T) {
	long := "Ciphers ^" + strings.Repeat("aes128-gcm@openssh.com,", 5) + "aes256-ctr"
	for _, c := range []struct {
		step Step
		want []string
	}{
		{Step{"put into ~/.ssh/config", "Ciphers ^aes128-ctr", ""}, []string{"  put into ~/.ssh/config  Ciphers ^aes128-ctr"}},
		{Step{"put into ~/.ssh/config", long, ""}, []string{"  put into ~/.ssh/config", long}},
		{Step{"try it", "sshpace advise x --prove", "changes nothing"}, []string{"  try it  sshpace advise x --prove  (changes nothing)"}},
		{Step{"try it", "sshpace advise " + strings.Repeat("x", 60) + " --prove", "changes nothing"},
			[]string{"  try it", "sshpace advise " + strings.Repeat("x", 60) + " --prove"}},
	} {
		var got []string
		for _, line := range stepLines([]Step{c.step}, 0) {
			got = append(got, text.Line(line, 0)...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func figureAt(v float64) rank.Figure {
	return rank.Figure{Estimate: stats.Estimate{Log: math.Log(v), N: 3}, Shown: stats.Exactly(v)}
}

// A chart shows each computation once, under the safest of its names.
func TestOneNameForOneComputation(t *testing.T) {
	r := &rank.Ranking{}
	for _, mac := range []string{"hmac-sha2-256", "hmac-sha2-256-etm@openssh.com"} {
		for _, d := range []record.Direction{record.Upload, record.Download} {
			r.Bulk = append(r.Bulk, rank.Cell{Suite: alg.NewSuite("aes128-ctr", mac, ""), Direction: d, Throughput: figureAt(1e8)})
		}
	}
	chart, _ := rankingChart(r, record.Upload)
	if len(chart.Items) != 1 || chart.Items[0].Label != "aes128-ctr + hmac-sha2-256-etm" {
		t.Errorf("rows: %v", chart.Items)
	}
}

// A cipher that costs a multiple of all others does not squeeze them: the scale is logarithmic.
func TestDearCiphersLeaveRoom(t *testing.T) {
	for _, dearest := range []float64{3, 40} {
		r := &rank.Ranking{By: rank.Cost}
		for name, cost := range map[string]float64{"aes128-gcm@openssh.com": 0.5, "aes128-ctr": 2, "3des-cbc": dearest} {
			r.Bulk = append(r.Bulk, rank.Cell{Suite: alg.NewSuite(name, "hmac-sha2-256", ""), Direction: record.Upload, Sides: rank.Sides{Client: figureAt(cost), Server: figureAt(cost)}})
		}
		if chart, _ := rankingChart(r, record.Upload); chart.Log != (dearest > 8) {
			t.Errorf("up to %v s/GB: logarithmic: %v", dearest, chart.Log)
		}
	}
}

// Whoever follows "measure longer" measures longer, however long that was before, and knows how
// long it takes.
func TestMeasureLonger(t *testing.T) {
	for _, c := range []struct {
		measured   time.Duration
		times      float64
		want, took string
	}{
		{0, 2, "60s", "60 s"}, {12 * time.Second, 2, "60s", "48 s"}, {time.Minute, 2, "120s", "60 s"}, {104 * time.Second, 2, "210s", "106 s"}, {time.Minute, 16, "960s", "15 min"},
	} {
		if flag, takes := longer(c.measured, c.times); flag != "--budget "+c.want || takes != "takes about "+c.took {
			t.Errorf("after %v: %v, %v, want %v, %v", c.measured, flag, takes, c.want, c.took)
		}
	}
	f := &record.File{Campaign: record.Campaign{Rounds: 3}}
	for range 3 {
		f.Readings = append(f.Readings, record.Reading{Subject: 1, Kind: record.LongRun, WallNS: 10 * time.Second})
	}
	if flag, takes := Longer(f, 4); flag != "--rounds 12" || takes != "takes about 90 s" {
		t.Errorf("of rounds: %s, %s", flag, takes)
	}
}

// A run is as long as its user was told, or as long as it was where it ended sooner.
func TestLasted(t *testing.T) {
	for _, c := range []struct {
		budget, measured time.Duration
		ended            plan.Ending
		want             string
	}{
		{20 * time.Second, 13 * time.Second, plan.EndBudget, "20 s"}, {20 * time.Second, 13 * time.Second, plan.EndPrecision, "13 s of 20 s"},
		{20 * time.Second, 57 * time.Second, plan.EndBudget, "57 s"}, {20 * time.Second, 0, "", "20 s"}, {0, 13 * time.Second, plan.EndComplete, "13 s"}, {0, 0, "", ""},
	} {
		s := screen{r: &rank.Ranking{Ended: string(c.ended), Campaign: record.Campaign{BudgetNS: c.budget}}, o: Options{Measured: c.measured}}
		if got := s.lasted(); got != c.want {
			t.Errorf("%v of %v, ended by %q: %q, want %q", c.measured, c.budget, c.ended, got, c.want)
		}
	}
}

// Tables are cut where rows are limited, and say so.
func TestHead(t *testing.T) {
	d := &Document{Tables: []Table{{Note: "A note.", Rows: make([]Row, 7)}, {Rows: make([]Row, 2)}}}
	for rows, want := range map[int][]int{0: {7, 2}, -1: {7, 2}, 3: {3, 2}} {
		tables := d.Head(rows).Tables
		if got := []int{len(tables[0].Rows), len(tables[1].Rows)}; !slices.Equal(got, want) {
			t.Errorf("%d rows of each: %v, want %v", rows, got, want)
		}
	}
	if note := d.Head(3).Tables[0].Note; note != "A note. First 3 of 7." || len(d.Tables[0].Rows) != 7 {
		t.Errorf("note %q, %d rows left in the document", note, len(d.Tables[0].Rows))
	}
}

// What limits a transfer is named where it was found out, and is no guess of three.
func TestTheLimitIsNamed(t *testing.T) {
	const unknown = "the link, the window of 2 MiB or a disk"
	window, link := record.Limit{What: "window"}, record.Limit{What: "link"}
	for _, c := range []struct {
		limits []record.Limit
		want   string
	}{
		{nil, unknown}, {[]record.Limit{window}, "the window of 2 MiB"}, {[]record.Limit{window, window}, "the window of 2 MiB"},
		{[]record.Limit{window, link}, unknown}, {[]record.Limit{{What: "unknown"}}, unknown}, {[]record.Limit{link}, "the link"},
	} {
		if got := limiting(&rank.Ranking{Limits: c.limits}); got != c.want {
			t.Errorf("%v: %s", c.limits, got)
		}
	}
}

// What limits does not say that no cipher helps: the answer does, where it is so.
func TestLimitLeavesTheGain(t *testing.T) {
	const denies = "no cipher or MAC"
	for _, verdict := range []stats.Verdict{stats.Better, stats.Equal, stats.NotEnough} {
		r := &rank.Ranking{Limits: []record.Limit{{What: "window", Sentence: "the window is the limit", Direction: record.Upload, Help: "several connections; " + denies}}}
		gain := advise.Gain{To: rank.Cell{Direction: record.Upload}, Verdict: verdict}
		got := screen{r: r, c: &advise.Choice{Gains: []advise.Gain{gain}, Verdict: verdict}}.limit()
		if strings.Contains(got, denies) || !strings.Contains(got, "the window is the limit; what helps: several connections") {
			t.Errorf("%s: %s", verdict, got)
		}
	}
}

// Of thousands of rows as many are shown as a screen has room for, and one more would be too many.
func TestThousandsOfRowsFit(t *testing.T) {
	table := Table{Columns: []Column{{Key: "name", Head: "name"}, {Key: "value", Head: "value"}}}
	for i := range 5000 {
		table.Rows = append(table.Rows, Row{Cells: []Cell{{Text: strconv.Itoa(i)}, {Text: strings.Repeat("x", i%3*60)}}})
	}
	table.Spare = len(table.Rows)
	fit, hidden := Fit([]Table{table}, 3)
	shown := len(fit[0].Rows)
	more := table
	more.Rows = table.Rows[:shown+1]
	if shown+hidden != 5000 || shown == 0 || length(fit)+3 > screenLines || length([]Table{more})+3 <= screenLines {
		t.Errorf("%d rows shown, %d hidden, %d lines", shown, hidden, length(fit))
	}
}
