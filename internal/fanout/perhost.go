package fanout

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// ForHost replaces %h by the name of a host, and %% by %, as in ssh_config (TOKENS).
func ForHost(text, host string) string {
	return strings.NewReplacer("%%", "%", "%h", host).Replace(text)
}

// formatters are programs in whose formats %h is something else.
var formatters = []string{"date", "find", "git", "printf", "rpm", "stat"}

// MeansHost reports whether %h in a command seems to mean the name of a host.
func MeansHost(command string) bool {
	words := strings.FieldsFunc(command, func(r rune) bool { return !unicode.IsLetter(r) })
	return ForHost(command, "x") != ForHost(command, "y") && !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(formatters, word) })
}

// PerHost runs commands in which %h is the name of the host. Names have no character that means
// anything to a shell.
type PerHost struct{ fleet.Executor }

// Execute replaces %h and calls the inner Executor.
func (p PerHost) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	cmd.Line = ForHost(cmd.Line, h.Name)
	return p.Executor.Execute(ctx, h, cmd, a)
}
