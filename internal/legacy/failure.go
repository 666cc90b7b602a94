package legacy

import (
	"slices"
	"strings"

	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// lost holds parts of further lines that old releases end with, or that only say that ssh ended.
var lost = []string{"Bad cipher", "Connection closed", "Connection reset", "Disconnect", "Unsupported", "Write failed: ", "client_loop: ", "ssh: "}

// failureOf returns the outcome of a run by ssh's message; ok is false if the line is not a
// failure.
func failureOf(line string) (outcome record.Outcome, ok bool) {
	if openssh.ReadEvent(line).Kind != openssh.Message {
		return "", false
	}
	if cause, _ := openssh.CauseOf([]string{line}); cause != openssh.Unknown {
		return openssh.OutcomeOf(cause), true
	}
	said := slices.ContainsFunc(lost, func(part string) bool { return strings.Contains(line, part) })
	return record.Broken, said
}
