package apply

import (
	"context"
	"fmt"
	"io"
	"os"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/advise"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// clientNow is what ssh offers a host now.
func clientNow(ctx context.Context, ssh openssh.Program, host string, flags conf.Flags) (side advise.Side, err error) {
	if side.Offer, err = ssh.Effective(ctx, openssh.Destination{Host: host, Flags: flags}); err != nil {
		return side, err
	}
	side.Default, err = ssh.Effective(ctx, openssh.Destination{Host: host, Flags: conf.Flags{Config: os.DevNull}})
	side.Old = !advise.Prepends(ssh.Version)
	return side, err
}

// serverNow finds sshd and what its configuration offers; path and config are ""
// where the user names none. Without an sshd, or a configuration that we may read,
// nothing is known of it, which notes are written about.
func serverNow(ctx context.Context, path, config, hostKey string, notes io.Writer) (sshd openssh.Program, side advise.Side, err error) {
	sshd, err = openssh.FindServer(ctx, path)
	if err != nil {
		if path == "" && config == "" {
			return openssh.Program{}, side, nil
		}
		return sshd, side, fault.WithHint(err, "install openssh-server, or name its path with --sshd")
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		fmt.Fprintf(notes, "note: %v\n", err)
	}
	side.Old = !advise.Prepends(sshd.Version)
	side.Default, err = sshd.EffectiveServer(ctx, os.DevNull, hostKey)
	if err == nil {
		side.Offer, err = sshd.EffectiveServer(ctx, config, hostKey)
	}
	if err != nil && config == "" {
		fmt.Fprintf(notes, "note: the present server configuration is unknown: %s\n", termsafe.OneLine(err.Error()))
		return sshd, advise.Side{Old: side.Old}, nil
	}
	return sshd, side, fault.WithHint(err, "check the file that --sshd-config names")
}
