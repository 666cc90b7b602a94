package report

import (
	"io"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// machineSchema names the layout of `machine --json`.
const machineSchema = "sshpace.limits/1"

// Machine shows what a machine can do at most.
func Machine(w io.Writer, file *record.File, asJSON bool) error {
	if !asJSON {
		return Text(w, document.OfMachine(file))
	}
	return termsafe.WriteJSON(w, struct {
		Schema       string               `json:"schema"`
		Environment  record.Environment   `json:"environment"`
		Measurements []record.Measurement `json:"measurements"`
		Findings     []record.Finding     `json:"findings"`
	}{machineSchema, file.Environment, file.Measurements, file.Findings}, " ")
}
