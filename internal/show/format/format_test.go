package format

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/booktest"
	"sshpace/internal/show/document"
)

// rendered writes a report in a format.
func rendered(t testing.TB, r Report, name string) []byte {
	t.Helper()
	f, ok := Named(name)
	if !ok {
		t.Fatalf("no format %s", name)
	}
	var out bytes.Buffer
	if err := r.Render(&out, f); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.Bytes()
}

// cellKey names a cell in every format.
type cellKey struct{ cipher, mac, direction string }

// figures are a cell's throughput in MB/s and its costs in ns per byte.
type figures [3]float64

// TestNumbersAreTheSameInEveryFormat reads the numbers of every cell out of every format: in full
// from those for programs, to three digits from those for people.
func TestNumbersAreTheSameInEveryFormat(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload, record.Download)
	report := &Ranking{Ranking: r, Records: f, Options: document.Options{All: true}}
	want := map[cellKey]figures{}
	for _, c := range r.Bulk {
		want[cellKey{c.Suite.Cipher, c.Suite.MAC, string(c.Direction)}] = figures{c.Throughput.Shown.Value / 1e6, c.Client.Shown.Value, c.Server.Shown.Value}
	}
	read := map[string]func(*testing.T, []byte) map[cellKey]figures{
		"json": readJSON, "csv": readCSV, "xlsx": readXLSX,
	}
	for name, read := range read {
		t.Run(name, func(t *testing.T) {
			got := read(t, rendered(t, report, name))
			if len(got) != len(want) {
				t.Errorf("%d cells, want %d", len(got), len(want))
			}
			for key, w := range want {
				if g := got[key]; !nearly(g, w, 1e-12) {
					t.Errorf("%v: %v, want %v", key, g, w)
				}
			}
		})
	}
	shown := map[string]*regexp.Regexp{
		"md": regexp.MustCompile(`^\| \d+ \| \w+ \| (\S+) \| (\S*) \| ([\d.]+) [^|]*\| ([\d.]+) [^|]*\| ([\d.]+) `),
		"html": regexp.MustCompile(`^<tr data-cipher="([^"]+)"(?: data-mac="([^"]+)")?>.*?<td class="n" data-v="[^"]*">([\d.]+) <.*?<td class="n" data-v="[^"]*">([\d.]+) <.*?` +
			`<td class="n" data-v="[^"]*">([\d.]+) <`),
		"text": regexp.MustCompile(`^ *\d+ +\w+ +(\S+) +((?:hmac|umac)\S*)? +([\d.]+) \(\S+\) +([\d.]+) +([\d.]+)`),
	}
	for name, pattern := range shown {
		t.Run(name, func(t *testing.T) {
			var lines [][]string
			bulk, _, _ := strings.Cut(string(rendered(t, report, name)), "\nKey exchanges by ") // text
			bulk, _, _ = strings.Cut(bulk, "\n## Key exchanges ")                               // md
			for line := range strings.Lines(bulk) {
				if m := pattern.FindStringSubmatch(strings.ReplaceAll(line, "&#43;", "+")); m != nil {
					lines = append(lines, m)
				}
			}
			if len(lines) != len(r.Bulk) {
				t.Fatalf("%d cells found, want %d", len(lines), len(r.Bulk))
			}
			for i, c := range r.Bulk { // in the same order, too
				w := want[cellKey{c.Suite.Cipher, c.Suite.MAC, string(c.Direction)}]
				for k, v := range w {
					if got := lines[i][3+k]; got != unit.Digits(v) {
						t.Errorf("%s: shows %s, want %s", c.Suite, got, unit.Digits(v))
					}
				}
				if got := lines[i][1]; document.Short(got) != document.Short(c.Suite.Cipher) {
					t.Errorf("row %d is %s, want %s", i+1, got, c.Suite.Cipher)
				}
			}
		})
	}
}

func nearly(a, b figures, relative float64) bool {
	for i := range a {
		if d := a[i] - b[i]; d > b[i]*relative || d < -b[i]*relative {
			return false
		}
	}
	return true
}

func readJSON(t *testing.T, data []byte) map[cellKey]figures {
	var doc struct {
		Bulk []struct {
			Cipher, MAC, Direction string
			Throughput             struct{ Value float64 } `json:"throughput_bytes_per_s"`
			Client                 struct{ Value float64 } `json:"client_ns_per_byte"`
			Server                 struct{ Value float64 } `json:"server_ns_per_byte"`
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	out := map[cellKey]figures{}
	for _, c := range doc.Bulk {
		out[cellKey{c.Cipher, c.MAC, c.Direction}] = figures{c.Throughput.Value / 1e6, c.Client.Value, c.Server.Value}
	}
	return out
}

// columnsOf reads rows whose columns have these names.
func columnsOf(t *testing.T, rows [][]string, scale float64, names ...string) map[cellKey]figures {
	t.Helper()
	index := map[string]int{}
	for i, name := range rows[0] {
		index[name] = i
	}
	out := map[cellKey]figures{}
	for _, row := range rows[1:] {
		var v figures
		for k := range v {
			var err error
			if v[k], err = strconv.ParseFloat(row[index[names[3+k]]], 64); err != nil {
				t.Fatalf("%s: %v", names[3+k], err)
			}
		}
		v[0] /= scale
		out[cellKey{row[index[names[0]]], row[index[names[1]]], row[index[names[2]]]}] = v
	}
	return out
}

func readCSV(t *testing.T, data []byte) map[cellKey]figures {
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return columnsOf(t, rows, 1e6, "cipher", "mac", "direction", "throughput_bytes_per_s", "client_ns_per_byte", "server_ns_per_byte")
}

func readXLSX(t *testing.T, data []byte) map[cellKey]figures {
	book := booktest.Read(t, data)
	out := map[cellKey]figures{}
	for _, sheet := range []string{"ciphers and MACs", "ciphers and MACs 2"} {
		for key, v := range columnsOf(t, book.Sheet(t, sheet).Rows(), 1, "cipher", "MAC", "direction", "throughput, MB/s", "client CPU, s/GB", "server CPU, s/GB") {
			out[key] = v
		}
	}
	return out
}

// TestComparisonsAgree reads the speed ratio of every cipher out of the formats for programs.
func TestComparisonsAgree(t *testing.T) {
	a, _ := benchtest.Ranking(t, 1, record.Upload)
	b, _ := benchtest.Ranking(t, 1.4, record.Upload)
	c, err := compare.Of([]compare.Input{{Label: "a.jsonl", Ranking: a}, {Label: "b.jsonl", Ranking: b}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report := (&Output{Only: []string{"ciphers"}}).compared(c, nil, false)
	rows, err := csv.NewReader(bytes.NewReader(rendered(t, report, "csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Lines []struct {
			Table  compare.Table
			Ratios []struct{ Value float64 }
		}
	}
	if err := json.Unmarshal(rendered(t, report, "json"), &doc); err != nil {
		t.Fatal(err)
	}
	if ciphers := c.In(compare.Ciphers); len(doc.Lines) != len(c.Lines) || len(rows) != len(ciphers)+1 {
		t.Fatalf("%d lines and %d ciphers, want %d and %d", len(doc.Lines), len(rows)-1, len(c.Lines), len(ciphers))
	}
	row := 0
	for i, l := range c.Lines {
		value := fmt.Sprint(l.Ratios[0].Value())
		if doc.Lines[i].Table != l.Table || fmt.Sprint(doc.Lines[i].Ratios[0].Value) != value {
			t.Errorf("%s: JSON %v, want %s", l.Name, doc.Lines[i], value)
		}
		if l.Table != compare.Ciphers {
			continue
		}
		if row++; rows[row][1] != value || rows[row][0] != l.Name {
			t.Errorf("%s: CSV %v, want %s", l.Name, rows[row], value)
		}
	}
}

var scripts = regexp.MustCompile(`(?s)<script>.*?</script>`)

// TestSparseReports renders runs that lack something in every format.
func TestSparseReports(t *testing.T) {
	each := func(change func(*rank.Cell)) func(*rank.Ranking) {
		return func(r *rank.Ranking) {
			for i := range r.Bulk {
				change(&r.Bulk[i])
			}
		}
	}
	for name, spoil := range map[string]func(*rank.Ranking){
		"no logins": func(r *rank.Ranking) { r.Kex = nil },
		"no bulk":   func(r *rank.Ranking) { r.Bulk = nil },
		"no server": each(func(c *rank.Cell) { c.Server = rank.Figure{} }),
		"no costs":  each(func(c *rank.Cell) { c.Server, c.Client = rank.Figure{}, rank.Figure{} }),
		"no rates":  each(func(c *rank.Cell) { c.Throughput = rank.Figure{} }),
		"one cell":  func(r *rank.Ranking) { r.Bulk = r.Bulk[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			r, f := benchtest.Ranking(t, 1, record.Upload)
			spoil(r)
			for _, format := range All() {
				if format.Name == "classic" {
					continue // needs rates
				}
				out := rendered(t, &Ranking{Ranking: r, Records: f}, format.Name)
				out = scripts.ReplaceAll(out, nil)
				if len(out) < 100 || bytes.Contains(out, []byte("NaN")) {
					t.Errorf("%s: %d bytes, or not a number in them", format.Name, len(out))
				}
			}
		})
	}
}

// BenchmarkFormats renders a file in every format, from the ranking on.
func BenchmarkFormats(b *testing.B) {
	r, f := benchtest.Ranking(b, 1, record.Upload)
	for _, format := range All() {
		b.Run(format.Name, func(b *testing.B) {
			for b.Loop() {
				rendered(b, &Ranking{Ranking: r, Records: f}, format.Name)
			}
		})
	}
	b.Run("rank", func(b *testing.B) {
		for b.Loop() {
			if _, err := rank.Of(f, rank.Auto); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Commands name the host of a result where that finds it, also where it is the newest of all.
func TestCommandsNameTheHost(t *testing.T) {
	s := store.Store(t.TempDir())
	results := filepath.Join(string(s), "results")
	if err := store.Make(results); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, target string
		server       record.ServerKind
		newest       bool
		advise, undo string
	}{
		{"1-nas.jsonl", "nas", record.ServerRemote, false, "sshpace advise -p 22 nas", "sshpace advise -p 22 nas --undo"},
		{"2-nas.jsonl", "nas", record.ServerRemote, true, "sshpace advise -p 22 nas", "sshpace advise -p 22 nas --undo"},
		{"3-loopback.jsonl", "loopback", record.ServerOpenSSH, true, "sshpace advise -p 22", "sshpace advise -p 22 --undo"},
		{"4-loopback.jsonl", "loopback", record.ServerOpenSSH, false, "sshpace advise -p 22 loopback", "sshpace advise -p 22 --undo"},
	} {
		path := filepath.Join(results, c.name)
		campaign := record.Campaign{Format: record.FormatVersion, Started: time.Now(), Command: "bench", Target: c.target, Server: c.server, Combos: alg.Combinations{Total: 1, Bulk: 1}}
		if err := store.Write(nil, path, []record.Record{&campaign, &record.Slices{Sitting: 1}}); err != nil {
			t.Fatal(err)
		}
		if got := Commands(s, path, c.newest, "modern", "-p", "22"); got.Advise != c.advise || got.Undo != c.undo {
			t.Errorf("%s: %q and %q, want %q and %q", c.name, got.Advise, got.Undo, c.advise, c.undo)
		}
	}
	if got := Commands(s, filepath.Join(results, "1-nas.jsonl"), false, "modern"); got.Advise != "sshpace advise 1-nas.jsonl" || got.Report != "sshpace report 1-nas.jsonl" || got.Undo != "sshpace advise nas --undo" {
		t.Errorf("an older result: %+v", got)
	}
}
