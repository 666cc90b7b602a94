//go:build linux

package testbed

import (
	"context"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// Present returns the suite that the user's own ssh would negotiate with the server: on loopback as
// a client of this machine's. It is empty where that is unknown.
func (b *Testbed) Present(ctx context.Context) alg.Suite {
	if b.Engine != record.EngineOpenSSH {
		return alg.Suite{}
	}
	destination := b.Destination
	if b.Kind != record.ServerRemote {
		destination = openssh.Destination{Host: "localhost"}
	}
	own, err := b.SSH.Effective(ctx, destination)
	if err != nil {
		return alg.Suite{}
	}
	return own.Negotiate(b.Offered)
}
