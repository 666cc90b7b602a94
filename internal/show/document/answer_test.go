package document_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// brief is what a document shows on a terminal.
func brief(d *document.Document) string {
	var lines []string
	for _, b := range d.Brief {
		lines = append(append(lines, b.Text(0)...), "")
	}
	return strings.Join(lines, "\n")
}

// There are three answers: better, equal, not enough data. Each says what to do, on one screen, and
// only an equal one that no cipher will help.
func TestThreeAnswers(t *testing.T) {
	r, f := benchtest.Ranking(t, 1)
	r.Campaign.Present = alg.Suite{Cipher: "aes256-ctr", MAC: "umac-128-etm@openssh.com"}
	for verdict, want := range map[stats.Verdict]struct{ says, step string }{
		stats.Better:    {"aes128-gcm is faster here than what ssh uses now (aes256-ctr + umac-128-etm): ", "put into ~/.ssh/config"},
		stats.Equal:     {"Keep aes256-ctr + umac-128-etm: nothing that policy modern allows is more than 5 % faster here.", ""},
		stats.NotEnough: {"Not enough data yet to say whether another cipher is faster here than aes256-ctr + umac-128-etm, which ssh uses now. aes128-gcm leads so far: ", "measure longer"},
	} {
		c := advise.Of(r, advise.Options{})
		c.Verdict = verdict
		d := document.OfRanking(r, f, document.Options{Choice: c, File: "run.jsonl"})
		if got := strings.Join(d.Answer.Says, " "); !strings.HasPrefix(got, want.says) || strings.Contains(got, "no cipher will help") {
			t.Errorf("%s: %s", verdict, got)
		}
		step := ""
		if len(d.Answer.Steps) > 0 {
			step = d.Answer.Steps[0].What
		}
		screen := brief(d)
		if n := strings.Count(strings.TrimSpace(screen), "\n") + 1; step != want.step || n > 22 || len(d.Answer.Config) > 0 != (verdict == stats.Better) {
			t.Errorf("%s: first %q, %d lines:\n%s", verdict, step, n, screen)
		}
		for _, word := range []string{"tied", "s/GB", "±"} {
			if strings.Contains(screen, word) {
				t.Errorf("%s: %q on the first screen", verdict, word)
			}
		}
	}
}

// Confidence is of the ratio that is advised on: on a machine that lacks processor time its
// interval is wide, and the word says so. What is not shown is counted once.
func TestConfidenceIsOfTheRatio(t *testing.T) {
	r, f := benchtest.Ranking(t, 1)
	r.Campaign.Present = alg.Suite{Cipher: "aes256-ctr", MAC: "umac-128-etm@openssh.com"}
	for factor, want := range map[float64]string{1.02: "confidence  high: ", 1.2: "confidence  medium: the ratio is only known within 20 %; ", 1.6: "confidence  low: the ratio is only known within 60 %; "} {
		c := advise.Of(r, advise.Options{})
		for _, g := range c.Gains {
			q := g.Decides(r.By)
			q.Lo, q.Hi = q.Value/factor, q.Value*factor
		}
		screen := brief(document.OfRanking(r, f, document.Options{Choice: c, File: "run.jsonl"}))
		if !strings.Contains(screen, want) || strings.Contains(screen, "likely") {
			t.Errorf("%g: want %q in\n%s", factor, want, screen)
		}
	}
}

// What is measured with a host says whose processors are meant, and what is not everybody's word.
func TestHostScreen(t *testing.T) {
	for side, want := range map[string]string{"both": "Both sides use ", "client": "The client uses "} {
		r, f := benchtest.Ranking(t, 1)
		r.Campaign.Present = alg.Suite{Cipher: "aes256-ctr", MAC: "umac-128-etm@openssh.com"}
		r.Campaign.Server, r.Campaign.Target, r.Environment.Cores = record.ServerRemote, "nas", 2
		for i := range r.Bulk {
			if side == "client" {
				r.Bulk[i].Server = rank.Figure{}
			}
		}
		c := advise.Of(r, advise.Options{})
		c.Verdict = stats.Better
		commands := document.Standard
		commands.Advise, commands.Undo = "sshpace advise nas", "sshpace advise nas --undo"
		screen := strings.ReplaceAll(strings.ReplaceAll(brief(document.OfRanking(r, f, document.Options{Choice: c, File: "run.jsonl", Commands: commands})), "\u00a0", " "), "\n", " ")
		for _, want := range []string{want, " less CPU. ", "sshpace advise nas --write client  (edits ssh_config)", "sshpace advise nas --undo client ", "(a-b)       95 % confidence interval; client: this side, which runs ssh ", ", 2 client cores, "} {
			if !strings.Contains(screen, want) {
				t.Errorf("%s: no %q in\n%s", side, want, screen)
			}
		}
	}
}

// A run whose cells are ordered by CPU time shows what people know: MB/s with how sure they are,
// and the CPU time of a GB beside it, in one direction; a chart says its unit in full.
func TestScreenByCostHasSpeeds(t *testing.T) {
	_, f := benchtest.Ranking(t, 1)
	r, err := rank.Of(f, rank.Cost)
	if err != nil {
		t.Fatal(err)
	}
	d := document.OfRanking(r, f, document.Options{File: "run.jsonl"})
	screen := brief(d)
	if row := regexp.MustCompile(`(?m)^aes128-gcm +\d+ \(\d+-\d+\) +\d\.\d+  #+`); !row.MatchString(screen) || !strings.Contains(screen, "MB/s  CPU s/GB") || strings.Contains(screen, "MB/CPU") {
		t.Errorf("no speed and CPU time in\n%s", screen)
	}
	i := slices.IndexFunc(d.Charts, func(c document.Chart) bool { return c.Name == document.AnswerChart })
	if i < 0 || d.Charts[i].Measure() != "MB per second of CPU time" {
		t.Errorf("charts: %+v", d.Charts)
	}
}

// All forms say how sure the answer is by one rule; the noise of all cells is none of a host, each
// of whose ratios has an interval of its own.
func TestOneConfidence(t *testing.T) {
	r, f := benchtest.Ranking(t, 1)
	r.Campaign.Present = alg.Suite{Cipher: "aes256-ctr", MAC: "umac-128-etm@openssh.com"}
	for _, server := range []record.ServerKind{"", record.ServerRemote} {
		r.Campaign.Server, r.Noise.Throughput = server, 64
		d := document.OfRanking(r, f, document.Options{File: "run.jsonl"})
		screen := brief(d)
		_, line, _ := strings.Cut(screen, "confidence  ")
		word, _, _ := strings.Cut(line, ":")
		facts := map[string]string{}
		for _, fact := range d.Quality {
			facts[fact.Name] = fact.Value
		}
		if word == "" || !strings.HasPrefix(facts["confidence"], word+": ") || (facts["noise floor"] != "") != (server == "") {
			t.Errorf("%q: the screen says %q, other forms %+v", server, word, d.Quality)
		}
	}
}

// Without a comparison with what ssh uses now nothing is advised: what compares is.
func TestNoAdviceWithoutComparison(t *testing.T) {
	r, f := benchtest.Ranking(t, 1)
	for present, want := range map[alg.Suite]struct{ says, step string }{
		{}:                                 {"does not say what ssh uses now, so nothing is advised.", "sshpace advise"},
		{Cipher: "aes128-gcm@example.com"}: {"Use aes128-gcm", ""}, // unknown, so that no policy allows it
		{Cipher: "aes192-ctr", MAC: "hmac-sha2-256-etm@openssh.com"}: {"(aes192-ctr + hmac-sha2-256-etm) was not measured, so nothing is advised.", "sshpace bench"},
	} {
		r := *r
		r.Campaign.Present = present
		r.Bulk = slices.DeleteFunc(slices.Clone(r.Bulk), func(c rank.Cell) bool { return c.Suite.Computation() == present.Computation() })
		r.Campaign.Imported = "a log" // which assumes nothing
		d := document.OfRanking(&r, f, document.Options{File: "run.jsonl"})
		says, step := strings.Join(d.Answer.Says, " "), ""
		if len(d.Answer.Steps) > 0 {
			step = d.Answer.Steps[0].Copy
		}
		if !strings.Contains(says, want.says) || (len(d.Answer.Config) == 0) != (want.step != "") || want.step != "" && step != want.step {
			t.Errorf("%v: %s %+v, %q", present, says, d.Answer.Config, step)
		}
	}
}

// Who has not enough data knows how long more takes, and how likely the leader is better.
func TestNotEnoughSaysHowLong(t *testing.T) {
	r, f := benchtest.Ranking(t, 1)
	r.Campaign.Present = alg.Suite{Cipher: "aes256-ctr", MAC: "umac-128-etm@openssh.com"}
	c := advise.Of(r, advise.Options{})
	c.Verdict = stats.NotEnough
	c.Gains[0].Chance = 0.93
	d := document.OfRanking(r, f, document.Options{Choice: c, File: "run.jsonl"})
	if says := strings.Join(d.Answer.Says, " "); !strings.Contains(says, "with a chance of 93 %") || !strings.HasPrefix(d.Answer.Steps[0].Note, "takes about ") {
		t.Errorf("%s %+v", says, d.Answer.Steps)
	}
}
