package report

import (
	"io"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/record"
)

// machineSchema names the layout of `limits --json`.
const machineSchema = "sshpace.limits/1"

// MachineJSON writes the limits of a machine.
func MachineJSON(w io.Writer, file *record.File) error {
	return termsafe.WriteJSON(w, struct {
		Schema       string               `json:"schema"`
		Environment  record.Environment   `json:"environment"`
		Measurements []record.Measurement `json:"measurements"`
		Findings     []record.Finding     `json:"findings"`
	}{machineSchema, file.Environment, file.Measurements, file.Findings}, " ")
}
