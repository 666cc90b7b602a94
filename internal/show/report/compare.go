package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// CompareText writes a comparison for a terminal of 80 columns. Speeds are
// relative to the first file.
func CompareText(w io.Writer, c *rank.Comparison) error {
	out := bufio.NewWriter(w)
	by := c.BulkBasis() + ", ns per byte"
	if c.By == rank.Throughput {
		by = c.BulkBasis() + ", MB/s"
	}
	for i, in := range c.Inputs {
		e := in.Ranking.Environment
		say(out, "%s  %s", string(rune('A'+i%26)), strings.Join(nonEmpty(in.Label, e.CPU, e.Client), ", "))
	}
	if len(c.Cells)+len(c.Kex) > 0 {
		say(out, "\nby %s; above 1: faster than A; ~ no difference shown; * differs from the other lines; ± holds how much runs differ as a whole", by)
	}
	if len(c.Normalised) > 0 {
		say(out, "normalised to the geometric mean of %s in each file", strings.Join(c.Normalised, ", "))
	}
	if len(c.Overall) > 0 {
		section(out, c, fmt.Sprintf("Overall (%d cells)", len(c.Cells)), []rank.Group{{Name: "geometric mean", Ratios: c.Overall}})
	}
	if len(c.Order) > 0 {
		line := fmt.Sprintf("%-36s", "order of the cells, Kendall's tau")
		for _, tau := range c.Order {
			line += fmt.Sprintf(" %-20.3f", tau)
		}
		row(out, "%s", line)
	}
	section(out, c, "Ciphers", c.Ciphers)
	section(out, c, "MACs", c.MACs)
	section(out, c, "Logins by "+c.KexBasis(), c.Kex)
	cellSection(out, c)
	machineSection(out, c)
	figureSection(out, c)
	for _, warning := range c.Warnings {
		say(out, "warning: %s", warning.Text)
	}
	return out.Flush()
}

func nonEmpty(parts ...string) []string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

func section(w io.Writer, c *rank.Comparison, name string, groups []rank.Group) {
	if len(groups) == 0 {
		return
	}
	say(w, "\n%s", name)
	columns(w, c)
	for _, g := range groups {
		line := fmt.Sprintf("%-36s", fit(Short(g.Name), 36))
		for _, r := range g.Ratios {
			line += " " + ratioText(r)
		}
		row(w, "%s", line)
	}
}

// columns writes the letters of the files above their ratios.
func columns(w io.Writer, c *rank.Comparison) {
	if len(c.Inputs) == 2 {
		return
	}
	line := strings.Repeat(" ", 36)
	for i := range c.Inputs[1:] {
		line += fmt.Sprintf(" %-20s", string(rune('A'+(i+1)%26))+"/A")
	}
	row(w, "%s", line)
}

// ratioText is a ratio in 20 columns, such as "1.052 ±1.3% faster".
func ratioText(r rank.Ratio) string {
	verdict := string(r.Verdict)
	if r.Verdict == rank.Unclear {
		verdict = "~"
	}
	if r.ByRest {
		verdict += "*"
	}
	return fmt.Sprintf("%5.3f %-6s %-7s", r.Speed.Value, spread(&r.Speed), verdict)
}

func cellSection(w io.Writer, c *rank.Comparison) {
	if len(c.Cells) == 0 {
		return
	}
	say(w, "\nCells")
	columns(w, c)
	scale := 1.0
	if c.By == rank.Throughput && len(c.Normalised) == 0 {
		scale = 1e6
	}
	for _, cell := range c.Cells {
		line := fmt.Sprintf("%-17s %-17s", fit(Short(cell.Suite.Cipher), 17), fit(Short(cell.Suite.MAC), 17))
		if len(c.Inputs) == 2 {
			line += fmt.Sprintf(" %6s %6s", number(cell.Values[0], scale), number(cell.Values[1], scale))
		}
		for _, r := range cell.Ratios {
			line += " " + ratioText(r)
		}
		row(w, "%s", line)
	}
}

func machineSection(w io.Writer, c *rank.Comparison) {
	if len(c.Machines) == 0 {
		return
	}
	say(w, "\nMachines: log(cost) = machine + cell; what deviates most")
	for i, m := range c.Machines {
		say(w, "%s  speed %.3f, cells deviate by %.1f %% from it", string(rune('A'+i%26)), m.Speed, m.Residual)
		for _, d := range m.Deviating {
			say(w, "     %s %s: %.2f x what is expected", Short(d.Suite.Cipher), Short(d.Suite.MAC), d.Factor)
		}
	}
}

// CompareSchema names the layout that CompareJSON writes.
const CompareSchema = "sshpace.compare/1"

// CompareJSON writes a comparison as one JSON object.
func CompareJSON(w io.Writer, c *rank.Comparison) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(comparisonDocument(c))
}

type jsonComparison struct {
	Schema     string        `json:"schema"`
	By         rank.By       `json:"ranked_by"`
	KexBy      rank.By       `json:"kex_ranked_by"`
	Order      []float64     `json:"order_kendall_tau,omitempty"`
	Unit       string        `json:"unit"` // of values
	Normalised []string      `json:"normalised_to,omitempty"`
	Files      []jsonFile    `json:"files"`
	Overall    []jsonRatio   `json:"overall,omitempty"`
	Ciphers    []jsonGroup   `json:"ciphers"`
	MACs       []jsonGroup   `json:"macs"`
	Kex        []jsonGroup   `json:"kex"`
	Cells      []jsonCells   `json:"cells"`
	Machines   []jsonMachine `json:"machines,omitempty"`
	Figures    []jsonFigure  `json:"measurements,omitempty"`
	Warnings   []jsonWarning `json:"warnings,omitempty"`
}

type jsonFile struct {
	Label       string             `json:"label"`
	Campaign    record.Campaign    `json:"campaign"`
	Environment record.Environment `json:"environment"`
}

type jsonRatio struct {
	Speed   jsonQuantity  `json:"speed_ratio"` // against the first file; above 1: faster
	Rest    *jsonQuantity `json:"speed_ratio_to_rest,omitempty"`
	P       float64       `json:"p_holm"`
	Verdict rank.Verdict  `json:"verdict"`
	ByRest  bool          `json:"verdict_by_rest,omitempty"`
}

type jsonGroup struct {
	Name   string      `json:"name"`
	Ratios []jsonRatio `json:"ratios"`
}

type jsonCells struct {
	Cipher    string           `json:"cipher"`
	MAC       string           `json:"mac"`
	Direction record.Direction `json:"direction"`
	Values    []*jsonQuantity  `json:"values"`
	Ratios    []jsonRatio      `json:"ratios"`
}

type jsonMachine struct {
	Label     string          `json:"label"`
	Speed     float64         `json:"speed_ratio"`
	Residual  float64         `json:"residual_pct"`
	Deviating []jsonDeviation `json:"deviating"`
}

type jsonDeviation struct {
	alg.Suite
	Direction record.Direction `json:"direction"`
	Factor    float64          `json:"speed_factor"`
}

func comparisonDocument(c *rank.Comparison) jsonComparison {
	out := jsonComparison{
		Schema: CompareSchema, By: c.By, KexBy: c.KexBy, Order: c.Order, Unit: "ns_per_byte", Normalised: c.Normalised,
		Overall: ratiosDocument(c.Overall), Ciphers: groupsDocument(c.Ciphers), MACs: groupsDocument(c.MACs),
		Kex: groupsDocument(c.Kex), Cells: []jsonCells{},
	}
	if c.By == rank.Throughput {
		out.Unit = "bytes_per_s"
	}
	if len(c.Normalised) > 0 {
		out.Unit = "relative"
	}
	for _, in := range c.Inputs {
		out.Files = append(out.Files, jsonFile{in.Label, in.Ranking.Campaign, in.Ranking.Environment})
	}
	for _, cell := range c.Cells {
		j := jsonCells{cell.Suite.Cipher, cell.Suite.MAC, cell.Direction, nil, ratiosDocument(cell.Ratios)}
		for _, v := range cell.Values {
			j.Values = append(j.Values, quantity(v))
		}
		out.Cells = append(out.Cells, j)
	}
	for _, m := range c.Machines {
		j := jsonMachine{m.Label, m.Speed, m.Residual, nil}
		for _, d := range m.Deviating {
			j.Deviating = append(j.Deviating, jsonDeviation{d.Suite, d.Direction, d.Factor})
		}
		out.Machines = append(out.Machines, j)
	}
	out.Figures = figuresDocument(c.Figures)
	for _, warning := range c.Warnings {
		out.Warnings = append(out.Warnings, jsonWarning(warning))
	}
	return out
}

func groupsDocument(groups []rank.Group) []jsonGroup {
	out := []jsonGroup{}
	for _, g := range groups {
		out = append(out, jsonGroup{g.Name, ratiosDocument(g.Ratios)})
	}
	return out
}

func ratiosDocument(ratios []rank.Ratio) []jsonRatio {
	var out []jsonRatio
	for _, r := range ratios {
		out = append(out, jsonRatio{jsonQuantity(r.Speed), quantity(r.Rest), r.P, r.Verdict, r.ByRest})
	}
	return out
}
