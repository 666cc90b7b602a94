//go:build linux

package testbed

import (
	"context"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/wire"
)

// ClientOffer returns the client's algorithms that bench would choose.
func ClientOffer(ctx context.Context, path string) alg.Offer {
	ssh, err := openssh.FindClient(ctx, path)
	if err != nil {
		return wire.Offer()
	}
	offer, err := ssh.Query(ctx)
	if err != nil {
		return wire.Offer()
	}
	return offer
}
