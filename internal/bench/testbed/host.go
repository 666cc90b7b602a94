//go:build linux

package testbed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"

	"sshpace/internal/base/fault"
	"sshpace/internal/bench/drive"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
)

// openHost logs in once, with the user's own settings, to read the host's offer: the debug output
// of that login holds the server's lists, so that no failing probes are necessary.
func (b *Testbed) openHost(ctx context.Context, p Params) (err error) {
	if err := b.chooseClient(ctx, p); err != nil {
		return err
	}
	if b.Destination, b.Connect, err = route.ThroughJumps(ctx, p.Route, b.SSH, p.Destination, p.Connect); err != nil {
		return err
	}
	remote := &drive.Remote{Rig: b.Rig, Once: p.Once, Login: p.Login}
	look, err := remote.Look(ctx)
	if err != nil {
		return b.Explain(err)
	}
	b.Offered, b.Kind, b.Target, b.Login = look.Offer, record.ServerRemote, p.Destination.Label, look.Login
	b.Environment.Server, b.Environment.ServerBanner = look.Version, look.Version
	b.Environment.ServerMachine, b.Environment.StrictKex, b.Environment.RoundTripNS = look.Machine, &look.Strict, look.RoundTrip
	if endpoint, err := b.SSH.Endpoint(ctx, p.Destination); err == nil {
		b.Environment.AddressCheck = addressCheck(endpoint)
	}
	if !look.Proc {
		b.note("the host has no /proc that we can read", "server costs are not measured", "")
	}
	b.Driver = remote
	return nil
}

// Explain says why the testbed cannot measure, and suggests a remedy.
func (b *Testbed) Explain(err error) error {
	if _, ok := errors.AsType[*drive.LoginError](err); ok {
		return fault.WithHint(err, "make sure that your account may log in by sshd (shell, password field, directory modes), or try --server native")
	}
	var hostErr *drive.HostError
	if !errors.As(err, &hostErr) {
		return err
	}
	return b.Bed.Explain(hostErr.Failed)
}

// addressCheck distinguishes two addresses, all but one in 65,536, without naming either: a result
// holds no addresses.
func addressCheck(e openssh.Endpoint) string {
	sum := sha256.Sum256([]byte(net.JoinHostPort(e.Hostname, e.Port)))
	return hex.EncodeToString(sum[:2])
}
