package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/file"
)

// Undo takes out what Write put into the configuration of p.Sides, whatever host it
// was for (p.Pattern: only that one). All other lines stay, those that came later,
// too. The old file is kept. Nothing that ssh or sshd would refuse takes its place.
func Undo(ctx context.Context, p Params) error {
	taken := 0
	for _, side := range []struct {
		name string
		undo func(context.Context, Params) (int, error)
	}{{"client", undoClient}, {"server", undoServer}} {
		if p.Sides != side.name && p.Sides != "both" {
			continue
		}
		n, err := side.undo(ctx, p)
		if err != nil {
			return explain(err)
		}
		taken += n
	}
	if taken == 0 {
		fmt.Fprintln(p.Out, "# nothing to undo: no lines of sshpace advise were found")
	}
	return nil
}

func undoClient(ctx context.Context, p Params) (int, error) {
	ssh, err := openssh.FindClient(ctx, p.SSH)
	if err != nil {
		return 0, fault.WithHint(err, "install openssh-client, or name its path with --ssh")
	}
	config, base, err := p.clientFile()
	if err != nil {
		return 0, err
	}
	reads := func(candidate string) error {
		_, err := ssh.Effective(ctx, openssh.Destination{Host: probe(p.Pattern), Flags: conf.Flags{Config: candidate}})
		return err
	}
	return p.takeOut(config, base, p.Pattern, reads)
}

func undoServer(ctx context.Context, p Params) (int, error) {
	sshd, err := openssh.FindServer(ctx, p.SSHD)
	if err != nil {
		return 0, fault.WithHint(err, "install openssh-server, or name its path with --sshd")
	}
	keys, err := loopback.MakeKeys(p.Dir)
	if err != nil {
		return 0, err
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		fmt.Fprintf(p.Notes, "note: %v\n", err)
	}
	config := cmp.Or(p.SSHDConfig, defaultServerConfig)
	n, err := p.takeOut(config, filepath.Dir(defaultServerConfig), "", func(candidate string) error { return sshd.CheckServer(ctx, candidate, keys.HostKey) })
	if n > 0 && err == nil {
		fmt.Fprintln(p.Out, reloadSSHD)
	}
	return n, err
}

// takeOut takes our blocks out of a configuration and of the drop-in file that it
// includes; reads tells whether the program takes a file. n is how many there were.
func (p Params) takeOut(config, base, pattern string, reads func(string) error) (n int, err error) {
	paths := []string{config}
	if folder := includedFolder(config, base); folder != "" {
		paths = append(paths, filepath.Join(folder, dropIn))
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		c, err := file.Open(path)
		if err != nil {
			return n, err
		}
		here := 0
		if c.New, here, err = file.Without(c.Old, strings.TrimSpace("advise "+pattern)); err != nil {
			return n, err
		}
		if here == 0 {
			continue
		}
		n += here
		fmt.Fprint(p.Out, "\n", c.Diff())
		backup, err := c.Apply(time.Now(), reads, func() error { return reads(config) })
		if err != nil {
			return n, err
		}
		fmt.Fprintf(p.Out, "# removed from %s: %s\n# the old file: %s\n", c.Path, unit.Count(here, "block"), backup)
	}
	return n, nil
}
