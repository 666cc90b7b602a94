package page

import (
	"sshpace/internal/base/alg"
	"sshpace/internal/show/document"
)

// chartData is a chart as the scripts read it.
type chartData struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Title     string         `json:"title"`
	Shape     document.Shape `json:"shape"`
	Unit      string         `json:"unit"`
	Series    []string       `json:"series"`
	Columns   []string       `json:"columns,omitempty"` // heat: the full names of the series, for filters
	Reference float64        `json:"reference,omitempty"`
	Rising    bool           `json:"rising"`
	Log       bool           `json:"log,omitempty"`
	Across    string         `json:"across,omitempty"`
	First     int            `json:"first"`
	Items     []itemData     `json:"items"`
}

type itemData struct {
	Label       string      `json:"label"`
	Mark        string      `json:"mark,omitempty"`
	Cipher      string      `json:"cipher,omitempty"`
	MAC         string      `json:"mac,omitempty"`
	Kex         string      `json:"kex,omitempty"`
	PostQuantum bool        `json:"postQuantum,omitempty"`
	Now         bool        `json:"now,omitempty"`
	Bound       bool        `json:"bound,omitempty"`
	Points      []pointData `json:"points"`
}

// pointData is [value, lo, hi, predicted] or, over time, [x, value]; null if unknown.
type pointData []any

func dataOf(id string, c document.Chart) chartData {
	out := chartData{
		ID: id, Name: c.Name, Title: c.Title, Shape: c.Shape, Unit: c.Unit, Series: c.Series, Columns: c.Columns,
		Reference: c.Reference, Rising: c.Rising, Log: c.Log, Across: c.Across, First: c.First,
	}
	for _, i := range c.Items {
		item := itemData{Label: i.Label, Mark: i.Mark, Cipher: i.Suite.Cipher, MAC: i.Suite.MAC, Kex: i.Suite.Kex, PostQuantum: i.PostQuantum, Now: i.Now, Bound: i.Bound}
		for _, p := range i.Points {
			item.Points = append(item.Points, pointOf(c.Shape, p))
		}
		out.Items = append(out.Items, item)
	}
	return out
}

func pointOf(shape document.Shape, p document.Point) pointData {
	switch {
	case !p.Known:
		return nil
	case shape == document.Curve:
		return pointData{round(p.X), round(p.Value)}
	case p.Predicted:
		return pointData{p.Value, p.Lo, p.Hi, 1}
	case p.Lo == p.Hi:
		return pointData{p.Value}
	}
	return pointData{p.Value, p.Lo, p.Hi}
}

// round keeps a thousandth: more than a dot over time can show.
func round(v float64) float64 { return float64(int64(v*1000+0.5)) / 1000 }

// policyData says which names of the document a policy allows; null: all.
type policyData struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Cipher []string `json:"cipher"`
	MAC    []string `json:"mac"`
	Kex    []string `json:"kex"`
}

func policies(algorithms []document.Algorithm) []policyData {
	var out []policyData
	for _, p := range alg.Policies() {
		d := policyData{Name: p.Name, Title: p.Title}
		lists := map[alg.Kind]*[]string{alg.Cipher: &d.Cipher, alg.MAC: &d.MAC, alg.Kex: &d.Kex}
		silent := map[alg.Kind]bool{alg.Cipher: p.Ciphers == nil, alg.MAC: p.MACs == nil, alg.Kex: p.Kex == nil}
		for kind, list := range lists {
			if !silent[kind] {
				*list = []string{}
			}
		}
		for _, a := range algorithms {
			if list := lists[a.Kind]; list != nil && !silent[a.Kind] && p.Allows(a.Kind, a.Name) {
				*list = append(*list, a.Name)
			}
		}
		out = append(out, d)
	}
	return out
}
