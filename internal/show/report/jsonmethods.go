package report

import (
	"io"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
)

// methodsSchema names the layout that MethodsJSON writes.
const methodsSchema = "sshpace.methods/1"

// MethodsJSON writes transfer methods for programs. Every number has its unit in its name; a
// missing figure is absent, never zero.
func MethodsJSON(w io.Writer, results []compare.MethodResult, f *record.File) error {
	d := struct {
		Schema       string               `json:"schema"`
		Campaign     record.Campaign      `json:"campaign"`
		Environment  record.Environment   `json:"environment"`
		Ended        string               `json:"ended,omitempty"`
		Methods      []jsonMethod         `json:"methods"`
		Limits       []record.Limit       `json:"limits,omitempty"`
		Measurements []record.Measurement `json:"measurements,omitempty"`
		Findings     []record.Finding     `json:"findings,omitempty"`
	}{methodsSchema, f.Campaign, f.Environment, f.End.Why, []jsonMethod{}, f.Limits, f.Measurements, f.Findings}
	for _, r := range results {
		d.Methods = append(d.Methods, jsonMethod{r, r.Suite.Status()})
	}
	return termsafe.WriteJSON(w, d, " ")
}

type jsonMethod struct {
	compare.MethodResult
	Status alg.Status `json:"status,omitempty"`
}
