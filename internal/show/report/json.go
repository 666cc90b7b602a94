package report

import (
	"io"
	"math"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// schema names the layout that JSON writes. Fields may be added to it; a
// change of meaning gets a new number.
const schema = "sshpace.report/1"

// JSON writes a ranking, and what it says to use, as one JSON object. Every number
// has its unit in its name; a missing figure is absent, never zero.
func JSON(w io.Writer, r *rank.Ranking, c *advise.Choice) error {
	out := jsonOf(r)
	out.Answer = document.ChoiceOf(c)
	return termsafe.WriteJSON(w, out, " ")
}

type jsonReport struct {
	Schema       string             `json:"schema"`
	Campaign     record.Campaign    `json:"campaign"`
	Environment  record.Environment `json:"environment"`
	Combinations alg.Combinations   `json:"combinations"`
	Answer       *document.Choice   `json:"answer,omitempty"`
	RankedBy     rank.By            `json:"ranked_by"`
	KexRankedBy  rank.By            `json:"kex_ranked_by,omitempty"`
	Ended        string             `json:"ended,omitempty"`
	NoiseFloor   rank.NoiseFloor    `json:"noise_floor"`
	Model        rank.Model         `json:"model"`
	Harness      jsonHarness        `json:"harness"`
	Slowed       *jsonSlowed        `json:"slowed_by_other_guests,omitempty"`
	Foreign      float64            `json:"foreign_cores,omitempty"` // that other programs of this machine kept busy
	Slices       *jsonSlices        `json:"slices,omitempty"`
	Bulk         []jsonCell         `json:"bulk"`
	Kex          []rank.Exchange    `json:"kex"`
	Copies       []rank.Copy        `json:"copies,omitempty"`
	Controls     []rank.Control     `json:"controls,omitempty"`
	Ceilings     *jsonCeilings      `json:"ceilings,omitempty"`
	Limits       []record.Limit     `json:"limits,omitempty"`
	Failed       []rank.Failure     `json:"failed,omitempty"`
	Trials       int                `json:"trials,omitempty"`
	Refusals     map[string]int     `json:"failed_trials,omitempty"` // by outcome
	Missing      []alg.Suite        `json:"missing,omitempty"`
	Warnings     []rank.Warning     `json:"warnings,omitempty"`
	Findings     []record.Finding   `json:"findings,omitempty"`
}

type jsonHarness struct {
	CPUShare float64 `json:"cpu_share_pct"`
	Drift    float64 `json:"drift_pct,omitempty"`
}

// jsonSlowed is how much more the same work took than at the machine's best.
type jsonSlowed struct {
	Cost   float64   `json:"cost_pct"`
	Wall   float64   `json:"wall_pct"`
	Turns  int       `json:"turns"` // of the probe
	Course []float64 `json:"over_time_pct"`
	Doubt  float64   `json:"level_doubt_pct"` // of all costs alike, 95 %
}

type jsonSlices struct {
	Count        int     `json:"count"`
	ExcessClient float64 `json:"excess_client_pct"` // of a slice, taken out of all figures
	ExcessServer float64 `json:"excess_server_pct"`
}

func slowedOf(r *rank.Ranking) *jsonSlowed {
	s := r.Slowed
	if s.Turns == 0 {
		return nil
	}
	out := &jsonSlowed{Cost: s.Percent(), Wall: 100 * math.Expm1(s.Wall), Turns: s.Turns, Course: []float64{}}
	out.Doubt = 100 * stats.Estimate{Err: r.Level(rank.Cost)}.Arm()
	for _, x := range s.Course {
		out.Course = append(out.Course, 100*(x-1))
	}
	return out
}

func slicesOf(s rank.Slicing) *jsonSlices {
	if s.Slices == 0 {
		return nil
	}
	return &jsonSlices{Count: s.Slices, ExcessClient: s.ExcessClient, ExcessServer: s.ExcessServer}
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
	SameAs     *alg.Suite       `json:"same_as,omitempty"`          // the cell further up that it is another name of: both have the same figures
	Both       float64          `json:"both_ns_per_byte,omitempty"` // of both sides together, or of the client where the server is unknown
}

func jsonOf(r *rank.Ranking) jsonReport {
	out := jsonReport{
		Schema: schema, Campaign: r.Campaign, Environment: r.Environment,
		Combinations: r.Combinations, RankedBy: r.By, KexRankedBy: r.KexBy, Ended: r.Ended,
		NoiseFloor: r.Noise, Model: r.Model,
		Slowed: slowedOf(r), Foreign: r.Slowed.Foreign, Slices: slicesOf(r.Slicing),
		Harness: jsonHarness{r.Harness.CPUShare, r.Drift},
		Bulk:    []jsonCell{}, Kex: append([]rank.Exchange{}, r.Kex...), Copies: r.Copies, Controls: r.Controls, Failed: r.Failed, Warnings: r.Warnings, Missing: r.Missing, Findings: r.Findings,
		Ceilings: ceilingsDocument(r.Ceilings), Limits: r.Limits, Trials: r.Trials,
	}
	twins := document.Twins(r)
	for _, c := range r.Bulk {
		var same *alg.Suite
		if of, ok := twins[record.Cell{Suite: c.Suite, Direction: c.Direction}]; ok {
			same = &of
		}
		out.Bulk = append(out.Bulk, jsonCell{
			Rank: c.Rank, Cipher: c.Suite.Cipher, MAC: c.Suite.MAC, Direction: c.Direction, Basis: c.Basis, Timed: c.ThroughputBasis(),
			Holdout: c.Holdout, Group: c.Group, Status: c.Status,
			Throughput: c.Throughput, Client: c.Client, Server: c.Server, SameAs: same, Both: c.Total(),
		})
	}
	for _, c := range r.Refusals {
		if out.Refusals == nil {
			out.Refusals = map[string]int{}
		}
		out.Refusals[string(c.Outcome)] += c.N
	}
	return out
}

// jsonCeilings are the limits of the machine beside its fastest cell.
type jsonCeilings struct {
	alg.Suite
	Direction  record.Direction `json:"direction"`
	Throughput stats.Interval   `json:"throughput_bytes_per_s"` // of that cell
	Measured   time.Time        `json:"measured"`               // when the machine was
	Limiting   string           `json:"limiting,omitempty"`     // name of the limit that is nearest; absent where none is near
	Disk       string           `json:"disk,omitempty"`         // name of the disk's limit, where a copy of files hits it first
	Limits     []jsonCeiling    `json:"limits"`
}

// jsonCeiling is one limit.
type jsonCeiling struct {
	Name    string   `json:"name"`
	Limit   float64  `json:"bytes_per_s"`
	Share   *float64 `json:"share_pct,omitempty"` // of the limit that the cell reaches
	Control bool     `json:"control,omitempty"`   // for comparison only: it limits nothing and has no share
}

func ceilingsDocument(c *rank.Ceilings) *jsonCeilings {
	if c == nil {
		return nil
	}
	out := &jsonCeilings{
		Suite: c.Cell.Suite, Direction: c.Cell.Direction, Throughput: *c.Cell.Throughput,
		Measured: c.Measured, Limiting: c.Limiting, Disk: c.Disk, Limits: []jsonCeiling{},
	}
	for _, r := range c.Rows {
		limit := jsonCeiling{Name: r.Name, Limit: r.Limit, Control: r.Control}
		if !r.Control {
			share := 100 * r.Share
			limit.Share = &share
		}
		out.Limits = append(out.Limits, limit)
	}
	return out
}
