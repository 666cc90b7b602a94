package report_test

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/plan"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/report"
)

func ranking(t *testing.T, seed uint64) *rank.Ranking {
	t.Helper()
	c := record.Campaign{Offer: benchtest.Offer(), Target: "loopback", Seed: seed, BudgetNS: time.Minute}
	p, err := plan.New(c, plan.Environment{Cores: 2, Capacity: 400})
	if err != nil {
		t.Fatal(err)
	}
	m := &benchtest.Machine{Seed: seed, Noise: 0.015, WallNoise: 0.05, Connection: 0.02, Interaction: 0.014}
	f, _ := m.Collect(c, p)
	f.Environment.CPU, f.Environment.Client, f.Environment.Server = "a CPU", "OpenSSH_9.2p1", "OpenSSH_9.2p1"
	f.End.Why = string(p.End())
	r, err := rank.Of(f, rank.Auto)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func render(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func fitsTerminal(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
			t.Errorf("blanks at the end: %q", line)
		}
	}
}

// text is the report for a terminal.
func text(t *testing.T, r *rank.Ranking, o document.Options) string {
	t.Helper()
	return render(t, func(w io.Writer) error { return report.Text(w, document.OfRanking(r, nil, o)) })
}

func TestText(t *testing.T) {
	for name, test := range map[string]struct {
		options document.Options
		wants   []string
	}{
		"first screen": {document.Options{File: "run.jsonl"}, []string{
			"aes128-gcm is faster here than what ssh uses now", "\n  put into ~/.ssh/config  Ciphers ^aes128-gcm@openssh.com\n", " now\n", " more combinations: sshpace report --all",
			"\n  login ", "\n  confidence  high: ", "\n  saved       run.jsonl",
		}},
		"all": {document.Options{All: true}, []string{
			"aes128-gcm is faster here than what ssh uses now", "Upload: ", "Key exchanges by", "3des-cbc", "quantum", "noise floor", "held-out", "ended by: budget",
		}},
		"method": {document.Options{Method: true}, []string{"2240 combinations", "held-out", "harness: ", "noise floor: ", "CPU s/GB: "}},
	} {
		r := ranking(t, 1)
		r.Campaign.Present = alg.Suite{Cipher: "aes256-ctr", MAC: "umac-128-etm@openssh.com"}
		got := text(t, r, test.options)
		fitsTerminal(t, got)
		for _, want := range test.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, got)
			}
		}
		if n := strings.Count(got, "\n"); name == "first screen" && n > 22 {
			t.Errorf("%d lines", n)
		}
	}
}

// What the first screen says of its own words can be relied on: patterns mean the cells of their
// row and no others.
func TestPatternsCanBeTyped(t *testing.T) {
	for seed := range uint64(4) {
		r := ranking(t, seed+1)
		c := advise.Of(r, advise.Options{})
		left := len(c.Options)
		for line := range strings.Lines(text(t, r, document.Options{Limit: -1})) {
			fields := strings.Fields(line)
			if !strings.Contains(line, " #") {
				continue
			}
			ciphers := alg.Offer{Ciphers: r.Campaign.Offer.Ciphers}.Ciphers
			var meant []string
			for _, word := range alg.Words(fields[:1]) {
				meant = append(meant, alg.Named(word, ciphers)...)
			}
			macs := []string{""}
			if len(fields) > 2 && fields[1] == "+" {
				macs = alg.Named(fields[2], r.Campaign.Offer.MACs)
			}
			for _, cipher := range meant {
				for _, mac := range macs {
					if !slices.ContainsFunc(c.Options, func(o rank.Row) bool { return o.Suite == alg.Suite{Cipher: cipher, MAC: mac} }) {
						t.Errorf("%q means %s %s, which the policy does not allow", line, cipher, mac)
					}
					left--
				}
			}
		}
		if left != 0 {
			t.Errorf("seed %d: %d options are in no row, or in two", seed+1, left)
		}
	}
}

// Names and messages from files and hosts must not steer a terminal.
func TestTextIsClean(t *testing.T) {
	r := ranking(t, 2)
	r.Campaign.Target = "evil\x1b]0;title\x07host"
	r.Environment.Server = "banner\x1b[2J\nforged line"
	r.Bulk[0].Suite.Cipher = "cipher\x1b[31m"
	r.Failed = []rank.Failure{{Suite: alg.Suite{Cipher: "x\u202ey"}, Detail: "went\rwrong"}}
	r.Warnings = append(r.Warnings, rank.Warning{Text: "a\x1b[Ab"})
	shown := text(t, r, document.Options{})
	for _, bad := range []string{"\x1b", "\x07", "\r", "\u202e", "\nforged"} {
		if strings.Contains(shown, bad) {
			t.Errorf("the text holds %q", bad)
		}
	}
}

func TestTextOfLittle(t *testing.T) {
	fitsTerminal(t, render(t, func(w io.Writer) error {
		return report.Text(w, document.OfRanking(&rank.Ranking{}, nil, document.Options{}))
	}))
	one := &rank.Ranking{Bulk: []rank.Cell{{Suite: alg.Suite{Cipher: strings.Repeat("long-", 20), MAC: strings.Repeat("mac-", 20)}, Rank: 1}}}
	fitsTerminal(t, render(t, func(w io.Writer) error { return report.Text(w, document.OfRanking(one, nil, document.Options{})) }))
}

func TestJSON(t *testing.T) {
	text := render(t, func(w io.Writer) error {
		return report.JSON(w, ranking(t, 3), document.Options{Choice: advise.Of(ranking(t, 3), advise.Options{})})
	})
	type quantity struct {
		Value, Lo, Hi float64
		N             int
	}
	var doc struct {
		Schema       string
		Combinations struct{ Total, Bulk, Kex int }
		NoiseFloor   map[string]float64 `json:"noise_floor"`
		Model        map[string]float64
		Bulk         []struct {
			Cipher, Basis, Group, Status string
			Throughput                   quantity `json:"throughput_bytes_per_s"`
			Client                       quantity `json:"client_ns_per_byte"`
			Server                       quantity `json:"server_ns_per_byte"`
		}
		Kex []struct {
			Name  string
			Login quantity `json:"login_ns"`
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "sshpace.report/1" || doc.Combinations.Total != 2240 || len(doc.Bulk) != 115 || len(doc.Kex) != 12 {
		t.Errorf("schema %q, %+v, %d cells, %d key exchanges", doc.Schema, doc.Combinations, len(doc.Bulk), len(doc.Kex))
	}
	if doc.NoiseFloor["cost_pct"] <= 0 || doc.Model["interaction_pct"] <= 0 || doc.Model["holdout_error_pct"] <= 0 {
		t.Errorf("noise floor %v, model %v", doc.NoiseFloor, doc.Model)
	}
	for _, c := range doc.Bulk {
		for _, q := range []quantity{c.Throughput, c.Client, c.Server} {
			if q.Value <= 0 || q.Lo > q.Value || q.Hi < q.Value {
				t.Errorf("%s: %+v", c.Cipher, q)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	inputs := []compare.Input{{Label: "a.jsonl", Ranking: ranking(t, 5)}, {Label: "b.jsonl", Ranking: ranking(t, 6)}}
	for range 2 {
		c, err := compare.Of(inputs, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := render(t, func(w io.Writer) error { return report.Text(w, document.OfComparison(c, document.Options{All: true})) })
		if len(inputs) == 2 { // more files than fit beside each other make longer lines
			fitsTerminal(t, text)
		}
		for _, want := range []string{"a.jsonl", "Overall", "Ciphers", "MACs", "Logins", "Cells", "all cells"} {
			if !strings.Contains(text, want) {
				t.Errorf("the comparison lacks %q", want)
			}
		}
		var doc struct {
			Schema string
			Lines  []struct {
				Table  compare.Table
				Ratios []struct{ Verdict string }
			}
		}
		if err := json.Unmarshal([]byte(render(t, func(w io.Writer) error { return report.CompareJSON(w, c) })), &doc); err != nil {
			t.Fatal(err)
		}
		cells := 0
		for _, l := range doc.Lines {
			if l.Table == compare.Cells {
				cells++
			}
		}
		if doc.Schema != "sshpace.compare/2" || cells != 115 || len(doc.Lines[0].Ratios) != len(inputs)-1 || doc.Lines[0].Ratios[0].Verdict == "" {
			t.Errorf("schema %q, %d cells", doc.Schema, cells)
		}
		inputs = append(inputs, compare.Input{Label: "c.jsonl", Ranking: ranking(t, 7)})
	}
}
