package document_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

func named(t *testing.T, d *document.Document, name, part string) document.Chart {
	t.Helper()
	for _, c := range d.Charts {
		if c.Name == name && c.Part == part {
			return c
		}
	}
	t.Fatalf("no chart %s %s; there are %q", name, part, d.ChartNames())
	return document.Chart{}
}

func TestChartsHaveTheNumbersOfTheirTables(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload, record.Download)
	d := document.OfRanking(r, f, document.Options{})
	for _, table := range d.Table("ranking") {
		ranking, heat := named(t, d, "ranking", table.Part), named(t, d, "heat", table.Part)
		dots := map[alg.Suite]float64{}
		for _, item := range ranking.Items {
			dots[item.Suite] = item.Points[0].Value
		}
		if len(dots) != len(ranking.Items) || len(dots) < 40 {
			t.Errorf("%d dots, %d names", len(ranking.Items), len(dots))
		}
		cells := map[[2]string]float64{}
		for _, item := range heat.Items {
			for k, p := range item.Points {
				if p.Known {
					cells[[2]string{item.Suite.Cipher, heat.Columns[k]}] = p.Value
				}
			}
		}
		for i, row := range table.Rows {
			want := row.Cells[5].Quantity.Value / 1e6
			got, shown := dots[row.Suite]
			if !shown { // another name of the same computation stands for it
				if !slices.ContainsFunc(ranking.Items, func(item document.Item) bool {
					return item.Suite.Cipher == row.Suite.Cipher && alg.Primitive(item.Suite.MAC) == alg.Primitive(row.Suite.MAC)
				}) {
					t.Errorf("row %d: no dot for %s", i+1, row.Suite)
				}
				continue
			}
			if got != want {
				t.Errorf("row %d: the dot is at %v, want %v", i+1, got, want)
			}
			if got := cells[[2]string{row.Suite.Cipher, row.Suite.MAC}]; got != want {
				t.Errorf("row %d: the heat map says %v, want %v", i+1, got, want)
			}
		}
	}
	cost := named(t, d, "cost", "upload")
	for i, item := range cost.Items {
		at := slices.IndexFunc(r.Bulk, func(c rank.Cell) bool { return c.Suite == item.Suite })
		if at < 0 {
			t.Fatalf("no cell of %s", item.Suite)
		}
		c := r.Bulk[at]
		sum := 0.0
		for _, p := range cost.Items[i].Points {
			sum += p.Value
		}
		if want := c.Client.Shown.Value + c.Server.Shown.Value; math.Abs(sum-want) > 1e-9 {
			t.Errorf("%s: the stack is %v high, want %v", c.Suite, sum, want)
		}
	}
}

// Whoever ranks by cost gets pictures of cost.
func TestRankedByCost(t *testing.T) {
	_, f := benchtest.Ranking(t, 1, record.Upload)
	r, err := rank.Of(f, rank.Cost)
	if err != nil {
		t.Fatal(err)
	}
	d := document.OfRanking(r, f, document.Options{})
	c := named(t, d, "ranking", "upload")
	if c.Unit != "s/GB" || c.Rising || len(c.Series) != 2 {
		t.Errorf("unit %s, rising %v, series %q", c.Unit, c.Rising, c.Series)
	}
	if got, want := named(t, d, "heat", "upload").Items[0].Points, r.Deciding(r.Bulk[0]).Value(); got[0].Value != want {
		t.Errorf("best of the heat map is %v, want %v", got[0].Value, want)
	}
}

// A chart explains and lists only what it has: no letters, and no side, of which nothing is known.
func TestChartsOfAHost(t *testing.T) {
	_, f := benchtest.Ranking(t, 1, record.Upload)
	r, err := rank.Of(f, rank.Cost)
	if err != nil {
		t.Fatal(err)
	}
	each(r, func(c *rank.Cell) { c.Server, c.Group = rank.Figure{}, "" })
	for i := range r.Kex {
		r.Kex[i].Server = rank.Figure{}
	}
	r.KexBy = rank.Cost
	for _, c := range document.OfRanking(r, f, document.Options{}).Charts {
		if strings.Contains(c.Note, "letter") || slices.Contains(c.Series, "server CPU") {
			t.Errorf("%s: series %q, note %q", c.Name, c.Series, c.Note)
		}
		for _, item := range c.Items {
			if len(item.Points) != len(c.Series) {
				t.Errorf("%s: %d points for %d series", c.Name, len(item.Points), len(c.Series))
			}
		}
	}
}

func TestEveryNameHasItsStanding(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	r.Kex[0].Name = "made-up-sha256"
	d := document.OfRanking(r, f, document.Options{})
	seen := map[string]document.Algorithm{}
	for _, a := range d.Algorithms {
		seen[a.Name] = a
		if a.Reason == "" {
			t.Errorf("%s has no reason", a.Name)
		}
	}
	for _, want := range []struct {
		name   string
		status alg.Status
	}{{"aes256-ctr", alg.Strong}, {"3des-cbc", alg.Weak}, {"diffie-hellman-group1-sha1", alg.Broken}, {"made-up-sha256", ""}} {
		if a, ok := seen[want.name]; !ok || a.Status != want.status {
			t.Errorf("%s: %+v, want status %q", want.name, a, want.status)
		}
	}
	if !seen["sntrup761x25519-sha512"].PostQuantum || seen["ecdh-sha2-nistp256"].PostQuantum {
		t.Error("post-quantum is not marked")
	}
}

// A run without logins, without the server's costs, or without anything to say of the machine still
// makes a document.
func TestSparseRankings(t *testing.T) {
	for name, spoil := range map[string]func(*rank.Ranking){
		"no logins": func(r *rank.Ranking) { r.Kex = nil },
		"no bulk":   func(r *rank.Ranking) { r.Bulk = nil },
		"no server": func(r *rank.Ranking) { each(r, func(c *rank.Cell) { c.Server = rank.Figure{} }) },
		"no costs": func(r *rank.Ranking) {
			each(r, func(c *rank.Cell) { c.Server, c.Client = rank.Figure{}, rank.Figure{} })
		},
		"no rates":   func(r *rank.Ranking) { each(r, func(c *rank.Cell) { c.Throughput = rank.Figure{} }) },
		"no machine": func(r *rank.Ranking) { r.Environment = record.Environment{} },
		"nothing":    func(r *rank.Ranking) { *r = rank.Ranking{} },
	} {
		t.Run(name, func(t *testing.T) {
			r, f := benchtest.Ranking(t, 1, record.Upload)
			spoil(r)
			d := document.OfRanking(r, f, document.Options{})
			if d.Title == "" || len(d.Method) == 0 {
				t.Errorf("no title or method: %+v", d)
			}
			for _, c := range d.Charts {
				for _, item := range c.Items {
					if len(item.Points) != len(c.Series) {
						t.Errorf("%s: %d points for %d series", c.Name, len(item.Points), len(c.Series))
					}
				}
			}
		})
	}
}

func each(r *rank.Ranking, change func(*rank.Cell)) {
	for i := range r.Bulk {
		change(&r.Bulk[i])
	}
}

func TestAllTextIsClean(t *testing.T) {
	r, f := benchtest.Ranking(t, 1, record.Upload)
	benchtest.Spoil(r)
	whole, err := json.Marshal(document.OfRanking(r, f, document.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(whole, &decoded); err != nil {
		t.Fatal(err)
	}
	walk(t, decoded)
}

// walk looks at every string inside a decoded JSON value.
func walk(t *testing.T, v any) {
	switch v := v.(type) {
	case string:
		if strings.ContainsAny(v, "\x00\x07\x1b\r\n\u2028\u2029\u202e") {
			t.Errorf("not clean: %q", v)
		}
	case []any:
		for _, x := range v {
			walk(t, x)
		}
	case map[string]any:
		for _, x := range v {
			walk(t, x)
		}
	}
}

func TestRawHasARowForEachSample(t *testing.T) {
	_, f := benchtest.Ranking(t, 1, record.Upload)
	rows, bytes := 0, int64(0)
	for row := range document.Raw(f) {
		if len(row) != len(document.RawColumns) {
			t.Fatalf("%d values for %d columns", len(row), len(document.RawColumns))
		}
		rows++
		if n, ok := row[11].(int64); ok {
			bytes += n
		}
	}
	wantRows, wantBytes := len(f.Samples), int64(0)
	for _, s := range f.Samples {
		wantBytes += int64(s.Bytes)
	}
	if rows != wantRows || bytes != wantBytes {
		t.Errorf("%d rows with %d bytes, want %d with %d", rows, bytes, wantRows, wantBytes)
	}
}
