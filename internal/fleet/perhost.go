package fleet

import (
	"context"
	"strings"

	"sshpace/internal/base/host"
)

// ForHost puts the name of a host where %h stands.
func ForHost(text, host string) string { return strings.ReplaceAll(text, "%h", host) }

// PerHost runs commands in which %h is the name of the host. Names have no character that
// means anything to a shell.
type PerHost struct{ Executor }

// Execute does so.
func (p PerHost) Execute(ctx context.Context, h host.Host, cmd Command, a *Attempt) Outcome {
	cmd.Line = ForHost(cmd.Line, h.Name)
	return p.Executor.Execute(ctx, h, cmd, a)
}
