package legacy

import (
	"slices"
	"strings"

	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// lost are parts of further lines that old releases end with, or that say
// nothing but that it was ssh which ended.
var lost = []string{"Bad cipher", "Connection closed", "Connection reset", "Disconnect", "Unsupported", "Write failed: ", "client_loop: ", "ssh: "}

// failureOf is how a run ended of which ssh says this; ok is false where the
// line is no failure.
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
