package report

import (
	"io"
	"math"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// compareSchema names the layout that CompareJSON writes.
const compareSchema = "sshpace.compare/1"

// CompareJSON writes a comparison as one JSON object, with the result of a gate, if there is one.
func CompareJSON(w io.Writer, c *compare.Comparison, gate *compare.Gate) error {
	d := comparisonDocument(c)
	d.Gate = gateDocument(gate)
	return termsafe.WriteJSON(w, d, " ")
}

type jsonComparison struct {
	Schema string     `json:"schema"`
	Unit   string     `json:"unit"` // of values
	Files  []jsonFile `json:"files"`
	compare.Comparison
	Cells []jsonCells `json:"cells"`
	Gate  *jsonGate   `json:"fail_on,omitempty"`
}

// jsonGate is the result of --fail-on.
type jsonGate struct {
	Limit   string          `json:"limit"`                // such as slower:5%
	Outcome compare.Outcome `json:"outcome"`              // pass, fail or inconclusive
	Passes  *float64        `json:"passes_pct,omitempty"` // from which limit on all lines pass; absent where one is not known
	Lines   []jsonGateLine  `json:"lines"`                // all that were looked at
}

type jsonGateLine struct {
	Name     string          `json:"name"`
	File     string          `json:"file"`
	Login    bool            `json:"login,omitempty"` // otherwise it is of transfers
	Outcome  compare.Outcome `json:"outcome"`
	Speed    *stats.Interval `json:"speed_ratio"`               // must lie above the limit to pass; null: too few runs
	Together *stats.Interval `json:"speed_ratio_all_lines"`     // must lie below the limit to fail: its interval holds for all lines together
	ByRest   bool            `json:"verdict_by_rest,omitempty"` // the latter is against the other lines
	Cost     *stats.Interval `json:"cpu_ratio,omitempty"`       // of a line of CPU time, in place of the speeds: above 1 is more of it
	CostAll  *stats.Interval `json:"cpu_ratio_all_lines,omitempty"`
	Client   bool            `json:"cpu_of_client_alone,omitempty"` // of its line: the server's is not known in all files
}

func gateDocument(g *compare.Gate) *jsonGate {
	if g == nil {
		return nil
	}
	out := &jsonGate{Limit: g.Limit.String(), Outcome: g.Outcome(), Lines: []jsonGateLine{}}
	if !math.IsInf(g.Passes, 0) {
		out.Passes = &g.Passes
	}
	for _, l := range g.Lines {
		line := jsonGateLine{Name: l.Name, File: l.File, Login: l.Login, Outcome: g.Limit.Of(l), ByRest: l.Than != "", Client: l.ClientAlone}
		own, together := bounded(l.Shown(l.Own)), bounded(l.Shown(l.Together))
		if l.CPU {
			line.Cost, line.CostAll = own, together
		} else {
			line.Speed, line.Together = own, together
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}

// bounded returns an interval of a ratio, nil where nothing bounds it.
func bounded(i stats.Interval) *stats.Interval {
	if i.Lo <= 0 || math.IsInf(i.Hi, 0) {
		return nil
	}
	return &i
}

type jsonFile struct {
	Label       string             `json:"label"`
	Campaign    record.Campaign    `json:"campaign"`
	Environment record.Environment `json:"environment"`
}

type jsonCells struct {
	Cipher    string            `json:"cipher"`
	MAC       string            `json:"mac"`
	Direction record.Direction  `json:"direction"`
	Values    []*stats.Interval `json:"values"`
	Ratios    []compare.Ratio   `json:"ratios"`
}

func comparisonDocument(c *compare.Comparison) jsonComparison {
	out := jsonComparison{Schema: compareSchema, Comparison: *c, Cells: []jsonCells{}}
	out.Unit, _, _ = document.ValueUnit(c)
	for _, groups := range []*[]compare.Group{&out.Ciphers, &out.MACs, &out.Kex} {
		*groups = append([]compare.Group{}, *groups...) // none is an empty list
	}
	for _, in := range c.Inputs {
		out.Files = append(out.Files, jsonFile{Label: in.Label, Campaign: in.Ranking.Campaign, Environment: in.Ranking.Environment})
	}
	for _, cell := range c.Cells {
		out.Cells = append(out.Cells, jsonCells{cell.Suite.Cipher, cell.Suite.MAC, cell.Direction, cell.Values, cell.Ratios})
	}
	return out
}
