package format_test

import (
	"bytes"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/advise"
	"sshpace/internal/record/store"
	"sshpace/internal/show/booktest"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"

	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/classic"
)

// recordedRankings are all fixtures that rank something, by name.
func recordedRankings(t *testing.T) map[string]*format.Ranking {
	t.Helper()
	out := map[string]*format.Ranking{}
	files, err := filepath.Glob(filepath.Join("..", "..", "cli", "testdata", "recorded", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		records, err := store.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := compare.RankRecords(file, records, rank.Auto)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Bulk) > 0 {
			out[filepath.Base(file)] = &format.Ranking{Ranking: r, Records: records, Classic: classic.Options{}.Write, Options: document.Options{File: file}}
		}
	}
	if len(out) < 4 {
		t.Fatalf("%d fixtures", len(out))
	}
	return out
}

// rendered is a report in a format.
func rendered(t *testing.T, r format.Report, name string) []byte {
	t.Helper()
	f, ok := format.Named(name)
	if !ok {
		t.Fatalf("no format %s", name)
	}
	var out bytes.Buffer
	if err := r.Render(&out, f); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.Bytes()
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	labels = regexp.MustCompile(`aria-label="([^"]*)"`) // what an outlined text says
)

// oneLineOf is a rendered report without markup and breaks, to look for words in it.
func oneLineOf(out string) string {
	out = html.UnescapeString(tags.ReplaceAllString(labels.ReplaceAllString(out, ">$1<"), " "))
	out = strings.NewReplacer(`\`, "", "# ", "").Replace(out)
	return strings.Join(strings.Fields(out), " ")
}

// hasSlide reports whether a result has charts of its answer.
func hasSlide(x *format.Ranking) bool {
	return slices.ContainsFunc(document.OfRanking(x.Ranking, x.Records, x.Options).Charts, func(c document.Chart) bool { return c.Name == "answer" })
}

// One result has one answer: every format of a file names the same winner, the same ties and the
// same gain, and so does the advice.
func TestEveryFormatGivesTheSameAnswer(t *testing.T) {
	for name, x := range recordedRankings(t) {
		c := advise.Of(x.Ranking, advise.Options{})
		if c.Tied == 0 {
			t.Errorf("%s: nothing to use", name)
			continue
		}
		answer := document.AnswerOf(x.Ranking, c, document.Standard)
		for _, format := range []string{"text", "md", "html", "svg", "classic"} {
			if format == "svg" && !hasSlide(x) {
				continue // charts come without the answer
			}
			got := oneLineOf(string(rendered(t, x, format)))
			for _, want := range answer.Says {
				if !strings.Contains(got, want) {
					t.Errorf("%s: %s does not say %s:\n%.3000s", name, format, want, got)
				}
			}
		}
		cells := sheetTexts(t, rendered(t, x, "xlsx"))
		for _, want := range answer.Says {
			if !slices.Contains(cells, want) {
				t.Errorf("%s: the workbook does not say %s", name, want)
			}
		}
		sameAnswerInJSON(t, name, c, rendered(t, x, "json"))
		sameAnswerInAdvice(t, name, x.Ranking, c)
	}
}

func sameAnswerInJSON(t *testing.T, name string, c *advise.Choice, text []byte) {
	t.Helper()
	var doc struct {
		Answer struct {
			Use   []alg.Suite
			Now   *alg.Suite
			Gains []struct {
				Throughput *stats.Interval `json:"throughput_ratio"`
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Answer.Use) != c.Tied || len(doc.Answer.Gains) != len(c.Gains) || (doc.Answer.Now == nil) != (c.Present.Suite.Cipher == "") {
		t.Errorf("%s: JSON says %+v", name, doc.Answer)
		return
	}
	for i, s := range doc.Answer.Use {
		if s != c.Options[i].Suite {
			t.Errorf("%s: JSON has %s at place %d, not %s", name, s, i, c.Options[i].Suite)
		}
	}
	for i, g := range c.Gains {
		if q := doc.Answer.Gains[i].Throughput; (q == nil) != (g.Throughput == nil) || q != nil && q.Value != g.Throughput.Value {
			t.Errorf("%s: JSON gains %+v, not %+v", name, q, g.Throughput)
		}
	}
}

func sameAnswerInAdvice(t *testing.T, name string, r *rank.Ranking, c *advise.Choice) {
	t.Helper()
	policy, err := advise.Named("modern")
	if err != nil {
		t.Fatal(err)
	}
	now := alg.Offer{Ciphers: []string{c.Present.Suite.Cipher}, MACs: []string{c.Present.Suite.MAC}, Kex: []string{c.Present.Suite.Kex}}
	a, err := advise.New(advise.Params{Ranking: r, Policy: policy, Client: advise.Side{Offer: now}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i, o := range c.Use() {
		if i >= a.Choice.Tied || a.Choice.Options[i].Suite != o.Suite {
			t.Errorf("%s: the advice ties %d, not %s", name, a.Choice.Tied, o.Suite)
		}
	}
	if first := c.Options[0].Suite; a.Advised.Bulk() != first || a.Lists[0].Choices[0].Name != first.Cipher {
		t.Errorf("%s: advised is %s, not %s", name, a.Advised, first)
	}
}

// Who measured with a configuration of their own is told to put lines there, and led on with it.
func TestAnswersNameTheConfiguration(t *testing.T) {
	before, err := os.ReadFile(filepath.Join("..", "..", "cli", "testdata", "recorded", "before.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string][]string{
		"":                                     {"put into ~/.ssh/config Ciphers ^", "sshpace advise"},
		"none":                                 {"put into ~/.ssh/config Ciphers ^", "sshpace advise -F none "},
		"my conf":                              {"put into my conf Ciphers ^", "sshpace advise -F 'my conf' "},
		"/srv/a/place/far/away/from/here/conf": {"put into .../conf Ciphers ^", "sshpace advise -F /srv/a/place/far/away/from/here/conf "},
	} {
		path := filepath.Join(t.TempDir(), "run.jsonl")
		result := before
		if config != "" {
			result = bytes.Replace(before, []byte(`{"campaign":{`), []byte(`{"campaign":{"asked":{"config":["`+config+`"]},`), 1)
		}
		if err := os.WriteFile(path, result, 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := format.Of(store.Of(func(string) string { return "" }), path, true, format.Wanted{Policy: "modern"})
		if err != nil {
			t.Fatal(err)
		}
		screen := oneLineOf(string(rendered(t, report, "text")))
		for _, want := range want {
			if !strings.Contains(screen, want) {
				t.Errorf("-F %q: no %q in\n%s", config, want, screen)
			}
		}
	}
}

// The first screen of every fixture fits one, and names nothing that the policy refuses in what it
// says to use.
func TestFirstScreens(t *testing.T) {
	for name, x := range recordedRankings(t) {
		screen := string(rendered(t, x, "text"))
		if n := strings.Count(screen, "\n"); n > 22 {
			t.Errorf("%s: %d lines:\n%s", name, n, screen)
		}
		for line := range strings.Lines(screen) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 && !strings.Contains(line, "sshpace advise") {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
		for _, o := range advise.Of(x.Ranking, advise.Options{}).Use() {
			if o.Suite.Status() != alg.Strong {
				t.Errorf("%s: says to use %s, which is %s", name, o.Suite, o.Suite.Status())
			}
		}
		for _, jargon := range []string{"quarantine", "A/A", "held-out", "harness", "ns/B", "Kendall"} {
			if strings.Contains(screen, jargon) {
				t.Errorf("%s: the first screen says %q:\n%s", name, jargon, screen)
			}
		}
	}
}

// sheetTexts are all texts of the summary of a workbook.
func sheetTexts(t *testing.T, workbook []byte) []string {
	t.Helper()
	return slices.Concat(booktest.Read(t, workbook).Sheet(t, "summary").Rows()...)
}
