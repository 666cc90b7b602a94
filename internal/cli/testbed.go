//go:build linux

package cli

import (
	"context"
	"errors"

	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/campaign"
	"sshpace/internal/record/store"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/safedir"
)

// withTestbed calls use with a private directory, and with client and server ready in it, and
// leaves nothing behind.
func withTestbed(ctx context.Context, sys System, where safedir.WorkdirParams, p testbed.Params, use func(*testbed.Testbed) error) error {
	return withDir(sys, where, func(dir *safedir.Workdir) error {
		p.Dir, p.Helper = dir, helper.Line
		bed, err := testbed.Open(ctx, p)
		if err != nil {
			return err
		}
		return errors.Join(use(bed), bed.Close())
	})
}

// destination returns the host to measure; none for the private server.
func (c *connectionFlags) destination(args []string) (openssh.Destination, error) {
	if len(args) == 0 {
		if options := c.Options(); len(options) > 0 {
			return openssh.Destination{}, usageError("name the host, such as user@host", "connection options without a host")
		}
		return openssh.Destination{}, nil
	}
	if err := store.CheckHost(args[0]); err != nil {
		return openssh.Destination{}, err
	}
	return route.Destination(c.Flags, args[0])
}

// output returns the place where a measurement shows its progress.
func (sys System) output(asJSON bool) campaign.Output {
	return campaign.Output{Stdout: sys.Stdout, Stderr: sys.Stderr, Screen: sys.screen(), JSON: asJSON, Store: store.Of(sys.Getenv)}
}
