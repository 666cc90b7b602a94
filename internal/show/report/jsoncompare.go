package report

import (
	"io"
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// compareSchema names the layout that CompareJSON writes.
const compareSchema = "sshpace.compare/1"

// CompareJSON writes a comparison as one JSON object, with what a gate says of it, if
// there is one.
func CompareJSON(w io.Writer, c *compare.Comparison, gate *compare.Gate) error {
	d := comparisonDocument(c)
	d.Gate = gateDocument(gate)
	return termsafe.WriteJSON(w, d, " ")
}

type jsonComparison struct {
	Schema     string                  `json:"schema"`
	By         rank.By                 `json:"ranked_by"`
	KexBy      rank.By                 `json:"kex_ranked_by"`
	Order      []float64               `json:"order_kendall_tau,omitempty"`
	Unit       string                  `json:"unit"` // of values
	Normalized []string                `json:"normalized_to,omitempty"`
	Files      []jsonFile              `json:"files"`
	Overall    []jsonRatio             `json:"overall,omitempty"`
	Ciphers    []jsonGroup             `json:"ciphers"`
	MACs       []jsonGroup             `json:"macs"`
	Kex        []jsonGroup             `json:"kex"`
	Cells      []jsonCells             `json:"cells"`
	Machines   []compare.MachineEffect `json:"machines,omitempty"`
	Figures    []compare.Figure        `json:"measurements,omitempty"`
	Defaults   []alg.Suite             `json:"defaults_changed,omitempty"` // what each file's programs negotiate
	Lacking    []compare.Lacking       `json:"not_compared,omitempty"`
	Warnings   []rank.Warning          `json:"warnings,omitempty"`
	Gate       *jsonGate               `json:"fail_on,omitempty"`
}

// jsonGate is what --fail-on says.
type jsonGate struct {
	Limit   string          `json:"limit"`                // such as slower:5%
	Outcome compare.Outcome `json:"outcome"`              // pass, fail or inconclusive
	Passes  *float64        `json:"passes_pct,omitempty"` // from which limit on all lines pass; absent where one is not known
	Lines   []jsonGateLine  `json:"lines"`                // all that were looked at
}

type jsonGateLine struct {
	Name     string          `json:"name"`
	File     string          `json:"file"`
	Login    bool            `json:"login,omitempty"` // else it is of transfers
	Outcome  compare.Outcome `json:"outcome"`
	Speed    *rank.Quantity  `json:"speed_ratio"`               // must lie above the limit to pass; null: too few runs
	Together *rank.Quantity  `json:"speed_ratio_all_lines"`     // must lie below the limit to fail: its interval holds for all lines together
	ByRest   bool            `json:"verdict_by_rest,omitempty"` // the latter is against the other lines
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
		out.Lines = append(out.Lines, jsonGateLine{l.Name, l.File, l.Login, g.Limit.Of(l), bounded(l.Own), bounded(l.Together), l.Than != ""})
	}
	return out
}

// bounded is an interval of a ratio, nil where nothing bounds it.
func bounded(i stats.Interval) *rank.Quantity {
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

type jsonRatio struct {
	Speed   rank.Quantity  `json:"speed_ratio"` // against the first file; above 1: faster
	Rest    *rank.Quantity `json:"speed_ratio_to_rest,omitempty"`
	P       float64        `json:"p_holm"`
	Verdict string         `json:"verdict"` // faster, slower, equal (within 5 %) or not enough data
	ByRest  bool           `json:"verdict_by_rest,omitempty"`
	Least   float64        `json:"least_slowdown_shown_pct,omitempty"`
}

type jsonGroup struct {
	Name   string      `json:"name"`
	Ratios []jsonRatio `json:"ratios"`
}

type jsonCells struct {
	Cipher    string           `json:"cipher"`
	MAC       string           `json:"mac"`
	Direction record.Direction `json:"direction"`
	Values    []*rank.Quantity `json:"values"`
	Ratios    []jsonRatio      `json:"ratios"`
}

func comparisonDocument(c *compare.Comparison) jsonComparison {
	out := jsonComparison{
		Schema: compareSchema, By: c.By, KexBy: c.KexBy, Order: c.Order, Normalized: c.Normalized,
		Overall: ratiosDocument(c.Overall), Ciphers: groupsDocument(c.Ciphers), MACs: groupsDocument(c.MACs),
		Kex: groupsDocument(c.Kex), Cells: []jsonCells{},
	}
	out.Unit, _, _ = document.ValueUnit(c)
	for _, in := range c.Inputs {
		out.Files = append(out.Files, jsonFile{Label: in.Label, Campaign: in.Ranking.Campaign, Environment: in.Ranking.Environment})
	}
	for _, cell := range c.Cells {
		out.Cells = append(out.Cells, jsonCells{cell.Suite.Cipher, cell.Suite.MAC, cell.Direction, cell.Values, ratiosDocument(cell.Ratios)})
	}
	out.Figures, out.Defaults, out.Machines, out.Lacking, out.Warnings = c.Figures, c.Defaults, c.Machines, c.Lacking, c.Warnings
	return out
}

func groupsDocument(groups []compare.Group) []jsonGroup {
	out := []jsonGroup{}
	for _, g := range groups {
		out = append(out, jsonGroup{Name: g.Name, Ratios: ratiosDocument(g.Ratios)})
	}
	return out
}

func ratiosDocument(ratios []compare.Ratio) []jsonRatio {
	var out []jsonRatio
	for _, r := range ratios {
		out = append(out, jsonRatio{Speed: r.Speed.Interval(), Rest: r.Rest.OrNil(), P: r.P, Verdict: document.Faster(r.Verdict), ByRest: r.ByRest, Least: 100 * r.Least})
	}
	return out
}
