//go:build linux

package testbed

import (
	"context"
	"errors"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/wire"
)

// chooseClient finds the client and its offer. Where ssh is missing, the built-in client replaces
// it on loopback.
func (b *Testbed) chooseClient(ctx context.Context, p Params) error {
	if p.Engine == record.EngineNative {
		b.nativeClient()
		return nil
	}
	private := p.Destination.Host == ""
	ssh, err := openssh.FindClient(ctx, p.SSH)
	if _, ok := errors.AsType[*openssh.NotFoundError](err); ok && p.Engine == "" && private {
		b.note("no ssh is installed: the built-in client is used instead",
			"client costs and speeds are those of Go's SSH, not of OpenSSH", openssh.InstallClient)
		b.nativeClient()
		return nil
	}
	if err != nil {
		if private {
			err = fault.WithHint(err, openssh.InstallClient+"; --engine native measures the built-in client")
		}
		return err
	}
	b.Engine, b.SSH = record.EngineOpenSSH, ssh
	b.Environment.Client, b.Environment.ClientPath, b.Environment.Crypto = ssh.Version, ssh.Path, ssh.Crypto
	b.Client, err = ssh.Query(ctx)
	return err
}

func (b *Testbed) nativeClient() {
	b.Engine, b.Client = record.EngineNative, wire.Offer()
	b.Environment.Client, b.Environment.Crypto = "sshpace native", "Go crypto"
}

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
