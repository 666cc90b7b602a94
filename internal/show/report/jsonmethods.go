package report

import (
	"io"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
)

// methodsSchema names the layout that MethodsJSON writes.
const methodsSchema = "sshpace.methods/1"

// MethodsJSON writes transfer methods for programs. Every number has its unit in its
// name; a missing figure is absent, never zero.
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
	}{methodsSchema, f.Campaign, f.Environment, f.Ended, []jsonMethod{}, f.Limits, f.Measurements, f.Findings}
	for _, r := range results {
		d.Methods = append(d.Methods, jsonMethod{
			Method: r.Method, Status: r.Suite.Status(), Throughput: r.Rate.OrNil(), ClientCost: r.ClientCost.OrNil(), ServerCost: r.ServerCost.OrNil(),
			Start: r.Start.OrNil(), Login: r.Login.OrNil(), Failed: r.Failed,
		})
	}
	return termsafe.WriteJSON(w, d, " ")
}

type jsonMethod struct {
	record.Method
	Status     alg.Status      `json:"status,omitempty"`
	Throughput *stats.Interval `json:"throughput_bytes_per_s,omitempty"`
	ClientCost *stats.Interval `json:"client_ns_per_byte,omitempty"`
	ServerCost *stats.Interval `json:"server_ns_per_byte,omitempty"`
	Start      *stats.Interval `json:"start_s,omitempty"`
	Login      *stats.Interval `json:"login_s,omitempty"`
	Failed     []string        `json:"failed,omitempty"`
}
