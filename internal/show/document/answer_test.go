package document_test

import (
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

// There are three answers: better, equal, not enough data. Each says what to do, on one
// screen, and only an equal one that no cipher will help.
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
		screen := benchtest.Brief(d)
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
		screen := benchtest.Brief(document.OfRanking(r, f, document.Options{Choice: c, File: "run.jsonl"}))
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
		screen := strings.ReplaceAll(strings.ReplaceAll(benchtest.Brief(document.OfRanking(r, f, document.Options{Choice: c, File: "run.jsonl", Commands: commands})), "\u00a0", " "), "\n", " ")
		for _, want := range []string{want, " less CPU. ", "sshpace advise nas --write client  (edits ssh_config)", "sshpace advise nas --undo client ", "(a-b)       95 % confidence interval; client: this side, which runs ssh ", ", 2 client cores, "} {
			if !strings.Contains(screen, want) {
				t.Errorf("%s: no %q in\n%s", side, want, screen)
			}
		}
	}
}
