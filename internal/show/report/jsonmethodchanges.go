package report

import (
	"io"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
)

// methodChangesSchema names the layout that MethodChangesJSON writes.
const methodChangesSchema = "sshpace.methods-compare/1"

// MethodChangesJSON writes the changes of transfer methods for programs: ratios to the first file.
// An unknown ratio is null. The result of a gate is included.
func MethodChangesJSON(w io.Writer, c *compare.MethodComparison, gate *compare.Gate) error {
	d := struct {
		Schema  string               `json:"schema"`
		Files   []string             `json:"files"`   // the others are compared with the first
		Methods []jsonMethodChange   `json:"methods"` // that all files have figures of
		Only    []compare.OnlyMethod `json:"not_compared,omitempty"`
		Gate    *jsonGate            `json:"fail_on,omitempty"`
	}{Schema: methodChangesSchema, Files: c.Files, Methods: []jsonMethodChange{}, Only: c.Only, Gate: gateDocument(gate)}
	for _, ch := range c.Changes {
		change := jsonMethodChange{ID: ch.ID, Method: ch.Method, ClientAlone: ch.ClientAlone}
		for k := range ch.Speed {
			change.Speed = append(change.Speed, ratioOf(ch.Speed[k]))
			change.Cost = append(change.Cost, ratioOf(ch.Cost[k]))
		}
		d.Methods = append(d.Methods, change)
	}
	return termsafe.WriteJSON(w, d, " ")
}

// jsonMethodChange has a ratio for each file but the first.
type jsonMethodChange struct {
	ID int `json:"id"`
	record.Method
	Speed []*jsonMethodRatio `json:"speed_ratio"` // above 1: faster
	Cost  []*jsonMethodRatio `json:"cpu_ratio"`   // above 1: more CPU time per byte
	// ClientAlone: it is the client's, because the server's is not known in all files; otherwise it
	// is of both sides.
	ClientAlone bool `json:"cpu_of_client_alone,omitempty"`
}

type jsonMethodRatio struct {
	stats.Interval
	Shown bool `json:"shown"` // it differs from 1 by more than chance
	Equal bool `json:"equal"` // it lies within 5 % of 1
}

func ratioOf(r compare.Ratio) *jsonMethodRatio {
	if !r.Speed.Known() {
		return nil
	}
	return &jsonMethodRatio{r.Speed.Interval(), r.Differs(), r.Verdict == stats.Equal}
}
