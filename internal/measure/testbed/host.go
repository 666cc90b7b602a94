//go:build linux

package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/measure/drive"
	"sshpace/internal/record"
	"sshpace/internal/ssh/knownhosts/check"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshlog"
)

// openHost logs in once, with the user's own settings, to find out what the
// host offers: the debug output of that login holds the server's lists, so that
// no probe has to fail its way through them.
func (b *Testbed) openHost(ctx context.Context, p Params) (err error) {
	if err := b.chooseClient(ctx, p); err != nil {
		return err
	}
	remote := &drive.Remote{Rig: b.Rig, SSH: b.SSH, Once: p.Once}
	if remote.Destination, remote.Env, err = route.ThroughJumps(ctx, p.Route, b.SSH, p.Destination, p.Connect); err != nil {
		return err
	}
	look, err := remote.Look(ctx)
	if err != nil {
		return b.Explain(err)
	}
	b.Offered, b.Server, b.Target = look.Offer, record.ServerRemote, p.Destination.Label
	b.Environment.Server, b.Environment.ServerBanner = look.Version, look.Version
	b.Environment.ServerMachine, b.Environment.StrictKex = look.Machine, &look.Strict
	if endpoint, err := b.SSH.Endpoint(ctx, p.Destination); err == nil {
		b.Environment.AddressCheck = addressCheck(endpoint)
	}
	if !look.Proc {
		b.note("the host has no /proc that we can read", "server costs are not measured", "")
	}
	b.Driver = remote
	return nil
}

// hostHints say what to do about a host that cannot be measured. %s is how ssh
// reaches it.
var hostHints = map[record.Outcome]string{
	record.HostKey:    "log in once with ssh %s and compare the fingerprint",
	record.Denied:     "sshpace asks for no password: make ssh -o BatchMode=yes %s true work first (agent or key file)",
	record.Refused:    "look whether an sshd listens there, and wait if it limits connections (MaxStartups, PerSourcePenalties): ssh -v %s",
	record.TimedOut:   "look whether the host is up, or allow more time with --connect-timeout: ssh -v %s",
	record.Unresolved: "check the name, or give it a HostName in your ssh_config: ssh -G %s",
	record.Broken:     "see what ssh says: ssh -v %s true",
	record.Mismatched: "see what ssh says: ssh -v %s true",
}

// Explain says why the testbed cannot measure, and what to do about it.
func (b *Testbed) Explain(err error) error {
	var loginErr *drive.LoginError
	if errors.As(err, &loginErr) {
		return fault.WithHint(err, "make sure that your account may log in by sshd (shell, password field, folder modes), or try --server native")
	}
	var hostErr *drive.HostError
	if !errors.As(err, &hostErr) {
		return err
	}
	e := &fault.Error{What: fmt.Sprintf("%s: %s", b.Destination.Label, hostErr.Detail)}
	if hint, ok := hostHints[hostErr.Outcome]; ok {
		e.Hint = fmt.Sprintf(hint, shell.Line(slices.Concat(b.Destination.Options, []string{b.Destination.Host})...))
	}
	if hostErr.Outcome == record.HostKey {
		e.Hint = cmp.Or(b.hostKeyHint(hostErr), e.Hint)
	}
	e.Hint = cmp.Or(openssh.ForeignHint(hostErr.Detail), e.Hint)
	return e
}

// hostKeyHint says what to do about a key that is worse than unknown; "" where it
// is not.
func (b *Testbed) hostKeyHint(refused *drive.HostError) string {
	switch cause, _ := sshlog.CauseOf([]string{refused.Detail}); {
	case cause == sshlog.HostKeyRevoked:
		return check.RevokedHint
	case refused.KeyFile != "":
		return b.SSH.ChangedKeyHint(context.Background(), b.Destination, refused.KeyFile)
	}
	return ""
}
