package cli

import (
	"context"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// present is what the user's own ssh would negotiate with the server of a testbed:
// on loopback as a client of this machine's. Empty where that cannot be found out.
func present(ctx context.Context, b *testbed.Testbed) alg.Suite {
	if b.Engine != record.EngineOpenSSH {
		return alg.Suite{}
	}
	destination := b.Destination
	if b.Server != record.ServerRemote {
		destination = openssh.Destination{Host: "localhost"}
	}
	own, err := b.SSH.Effective(ctx, destination)
	if err != nil {
		return alg.Suite{}
	}
	return own.Negotiate(b.Offered)
}
