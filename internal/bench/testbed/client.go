//go:build linux

package testbed

import (
	"context"
	"errors"

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
