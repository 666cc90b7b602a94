package page_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// A full run in both directions, held to the size that a mail can carry.
func TestSize(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload, record.Download)
	if n := len(render(t, document.OfRanking(r, f, document.Options{}))); n > 1_200_000 {
		t.Errorf("the page has %d bytes", n)
	}
}

// The tables are there without scripts, with heads and captions.
func TestWithoutScripts(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	page := render(t, document.OfRanking(r, f, document.Options{}))
	body := regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(string(page), "")
	if rows := strings.Count(body, "<tr data-cipher="); rows != len(r.Bulk) {
		t.Errorf("%d rows of cells, want %d", rows, len(r.Bulk))
	}
	if tables, captions := strings.Count(body, "<table"), strings.Count(body, "<caption"); tables == 0 || tables != captions {
		t.Errorf("%d tables with %d captions", tables, captions)
	}
	for _, c := range r.Bulk {
		if !strings.Contains(body, ">"+unit.Digits(c.Throughput.Shown.Value/1e6)+" ") {
			t.Errorf("%s: no figure in the page", c.Suite)
		}
	}
	if attributes := regexp.MustCompile(`\s(on\w+|style)=`).FindString(body); attributes != "" {
		t.Errorf("attribute %q: the policy would refuse it", attributes)
	}
}

// A minor column in which nothing stands takes no room of the others.
func TestEmptyColumns(t *testing.T) {
	table := document.Table{Title: "T", Columns: []document.Column{{Head: "way"}, {Head: "client", Minor: true}, {Head: "login", Minor: true, Kind: document.Quantity}, {Head: "server", Minor: true}, {Head: "MAC"}}}
	for _, server := range []string{"", "sshd"} {
		table.Rows = append(table.Rows, document.Row{Cells: []document.Cell{{Text: "pipe"}, {}, {}, {Text: server}, {}}})
	}
	page := string(render(t, &document.Document{Tables: []document.Table{table}}))
	var heads []string
	for _, head := range regexp.MustCompile(`(?s)<th[^>]*>(.*?)</th>`).FindAllStringSubmatch(page, -1) {
		heads = append(heads, regexp.MustCompile(`\s|<.*?>`).ReplaceAllString(head[1], ""))
	}
	if got := strings.Join(heads, " "); got != "way server MAC" {
		t.Errorf("columns %q", got)
	}
}

func TestNothingIsLoaded(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	page := render(t, document.OfRanking(r, f, document.Options{}))
	for _, bad := range []string{" src=", "<link", "@import", "url(", "https://", "<iframe"} {
		without := regexp.MustCompile(`(?s)<script>.*?</script>`).ReplaceAll(page, nil)
		if bytes.Contains(without, []byte(bad)) {
			t.Errorf("%q in the page", bad)
		}
	}
	if !bytes.Contains(page, []byte("default-src &#39;none&#39;; script-src &#39;sha256-")) {
		t.Error("no policy in the page")
	}
}

// The bundle says what it is built from, and its lock file names no server.
func TestBundle(t *testing.T) {
	read := func(name string) []byte {
		data, err := os.ReadFile("echarts/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var lock struct {
		Packages map[string]struct{ Version, Resolved, Integrity string }
	}
	if err := json.Unmarshal(read("package-lock.json"), &lock); err != nil {
		t.Fatal(err)
	}
	bundle := string(read("echarts.js")[:600])
	for _, name := range []string{"echarts", "zrender"} {
		if version := lock.Packages["node_modules/"+name].Version; !strings.Contains(strings.ToLower(bundle), name+" "+version+",") {
			t.Errorf("the bundle does not say that it holds %s %s", name, version)
		}
	}
	for path, p := range lock.Packages {
		if p.Resolved != "" || path != "" && p.Integrity == "" {
			t.Errorf("%s: resolved %q, integrity %q", path, p.Resolved, p.Integrity)
		}
	}
}
