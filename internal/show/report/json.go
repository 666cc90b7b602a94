package report

import (
	"io"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// schema names the layout that JSON writes. Fields may be added to it; a change of meaning gets a
// new number.
const schema = "sshpace.report/1"

// JSON writes a ranking, its advice, and its limits, as one JSON object. Every number has its unit
// in its name; a missing figure is absent, never zero.
func JSON(w io.Writer, r *rank.Ranking, o document.Options) error {
	out := jsonOf(r)
	out.Answer, out.Ceilings = document.ChoiceOf(o.Choice), o.Ceilings
	return termsafe.WriteJSON(w, out, " ")
}

// compareSchema names the layout that CompareJSON writes.
const compareSchema = "sshpace.compare/2"

// CompareJSON writes a comparison as one JSON object.
func CompareJSON(w io.Writer, c *compare.Comparison) error {
	return termsafe.WriteJSON(w, struct {
		Schema string `json:"schema"`
		*compare.Comparison
	}{compareSchema, c}, " ")
}

type jsonReport struct {
	Schema string           `json:"schema"`
	Answer *document.Choice `json:"answer,omitempty"`
	rank.Ranking
	Bulk     []jsonCell        `json:"bulk"`
	Slowed   *jsonSlowed       `json:"slowed_by_other_guests,omitempty"`
	Foreign  float64           `json:"foreign_cores,omitempty"` // that other programs of this machine kept busy
	Ceilings *compare.Ceilings `json:"ceilings,omitempty"`
}

// jsonSlowed is how much longer the same work took than at the machine's best.
type jsonSlowed struct {
	Cost  float64 `json:"cost_pct"`
	Doubt float64 `json:"level_doubt_pct"` // of all costs alike, 95 %
}

func slowedOf(r *rank.Ranking) *jsonSlowed {
	if !r.Slowed.Known {
		return nil
	}
	return &jsonSlowed{Cost: r.Slowed.Percent(), Doubt: 100 * stats.Estimate{Err: r.Level(rank.Cost, false)}.Arm()}
}

type jsonCell struct {
	Rank       int              `json:"rank"`
	Cipher     string           `json:"cipher"`
	MAC        string           `json:"mac"`
	Direction  record.Direction `json:"direction"`
	Basis      rank.Basis       `json:"basis"`
	Timed      rank.Basis       `json:"throughput_basis,omitempty"`
	Holdout    bool             `json:"holdout,omitempty"`
	Group      string           `json:"group,omitempty"`
	Status     alg.Status       `json:"status"`
	Throughput *stats.Interval  `json:"throughput_bytes_per_s,omitempty"`
	Client     *stats.Interval  `json:"client_ns_per_byte,omitempty"`
	Server     *stats.Interval  `json:"server_ns_per_byte,omitempty"`
	SameAs     *alg.Suite       `json:"same_as,omitempty"`          // the earlier cell of which it is another name: both have the same figures
	Both       float64          `json:"both_ns_per_byte,omitempty"` // of both sides together, or of the client where the server is unknown
}

func jsonOf(r *rank.Ranking) jsonReport {
	out := jsonReport{Schema: schema, Ranking: *r, Bulk: []jsonCell{}, Slowed: slowedOf(r), Foreign: r.Slowed.Foreign}
	out.Kex = append([]rank.Exchange{}, r.Kex...) // none is an empty list
	twins := document.Twins(r)
	for _, c := range r.Bulk {
		var same *alg.Suite
		if of, ok := twins[record.Cell{Suite: c.Suite, Direction: c.Direction}]; ok {
			same = &of
		}
		out.Bulk = append(out.Bulk, jsonCell{
			Rank: c.Rank, Cipher: c.Suite.Cipher, MAC: c.Suite.MAC, Direction: c.Direction, Basis: c.Basis, Timed: c.Timed,
			Holdout: c.Holdout, Group: c.Group, Status: c.Status,
			Throughput: c.Throughput.Shown, Client: c.Client.Shown, Server: c.Server.Shown, SameAs: same, Both: c.Total.Value(),
		})
	}
	return out
}
