package fanout

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// ForHost puts the name of a host where %h stands, and % where %% does, as in ssh_config (TOKENS).
func ForHost(text, host string) string {
	return strings.NewReplacer("%%", "%", "%h", host).Replace(text)
}

// formatters are programs in whose formats %h is something else.
var formatters = []string{"date", "find", "git", "printf", "rpm", "stat"}

// MeansHost tells whether %h in a command seems to stand for the name of a host.
func MeansHost(command string) bool {
	words := strings.FieldsFunc(command, func(r rune) bool { return !unicode.IsLetter(r) })
	return ForHost(command, "x") != ForHost(command, "y") && !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(formatters, word) })
}

// PerHost runs commands in which %h is the name of the host. Names have no character that
// means anything to a shell.
type PerHost struct{ fleet.Executor }

// Execute does so.
func (p PerHost) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	cmd.Line = ForHost(cmd.Line, h.Name)
	return p.Executor.Execute(ctx, h, cmd, a)
}
