package report_test

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/advise"
	"sshpace/internal/show/document"
	"sshpace/internal/show/report"
)

// Cells that are names of one computation have the same figures, and all but the first name that
// one: who counts figures leaves the others out.
func TestTwinsNameTheFirst(t *testing.T) {
	r := ranking(t, 1)
	d := document.OfRanking(r, nil, document.Options{Choice: advise.Of(r, advise.Options{})})
	rows, err := csv.NewReader(strings.NewReader(render(t, func(w io.Writer) error { return report.CSV(w, d, "ranking") }))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
	cost, twins := map[string]string{}, 0
	for _, row := range rows[1:] {
		name := document.Short(at(row, "cipher")) + " + " + document.Short(at(row, "mac"))
		cost[name] = at(row, "client_ns_per_byte")
		if first := at(row, "same_as"); first != "" {
			if twins++; cost[first] == "" || cost[first] != cost[name] {
				t.Errorf("%s is as %s, which has %q and not %q", name, first, cost[first], cost[name])
			}
		}
	}
	var out struct {
		Bulk []struct {
			SameAs *alg.Suite `json:"same_as"`
		}
	}
	if err := json.Unmarshal([]byte(render(t, func(w io.Writer) error {
		return report.JSON(w, r, document.Options{Choice: advise.Of(r, advise.Options{})})
	})), &out); err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, cell := range out.Bulk {
		if cell.SameAs != nil {
			named++
		}
	}
	if twins < 10 || named != twins {
		t.Errorf("%d rows of CSV name another one, and %d cells of JSON", twins, named)
	}
}
