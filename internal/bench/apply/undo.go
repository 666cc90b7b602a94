package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/sys/file"
)

// Undo removes the lines that Write put into the configuration of p.Sides, for any host (p.Pattern:
// only that one). All other lines stay, later ones as well. The old file is kept. It never leaves a
// file that ssh or sshd would refuse.
func Undo(ctx context.Context, p Params) error {
	if err := p.Check(); err != nil {
		return err
	}
	taken := 0
	for _, find := range []struct {
		name string
		side func(context.Context) (*side, error)
	}{{"client", func(ctx context.Context) (*side, error) { return p.client(ctx, p.Flags) }}, {"server", p.server}} {
		if p.Sides != find.name && p.Sides != "both" {
			continue
		}
		s, err := find.side(ctx)
		if err != nil {
			return explain(err)
		}
		n, err := p.takeOut(ctx, s)
		if err != nil {
			return explain(err)
		}
		taken += n
	}
	if taken == 0 {
		whose := ""
		if p.Pattern != "" {
			whose = " for " + termsafe.OneLine(p.Pattern)
		}
		fmt.Fprintf(p.Out, "# nothing to undo: no lines of sshpace advise%s were found\n", whose)
	}
	return nil
}

// takeOut removes our blocks from a configuration and from the drop-in file that it includes. n
// counts them.
func (p Params) takeOut(ctx context.Context, s *side) (n int, err error) {
	config, base, err := s.file()
	if err != nil {
		return 0, err
	}
	paths := []string{config}
	if directory := includedBy(config, base).directory(); directory != "" {
		paths = append(paths, filepath.Join(directory, dropIn))
	}
	for _, path := range paths {
		here, err := p.takeOutOf(ctx, s, path, config)
		if n += here; err != nil {
			return n, err
		}
	}
	if n > 0 && s.after != "" {
		fmt.Fprintln(p.Out, s.after)
	}
	return n, nil
}

// takeOutOf removes our blocks from one file of a configuration.
func (p Params) takeOutOf(ctx context.Context, s *side, path, config string) (n int, err error) {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	c, err := file.Open(ctx, path)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if c.New, n, err = file.Without(c.Old, s.block(p.Pattern)); err != nil {
		return 0, fmt.Errorf("%s: %w", c.Path, err)
	}
	if n == 0 {
		return 0, nil
	}
	fmt.Fprint(p.Out, "\n", c.Diff())
	reads := func(file string) error { return s.reads(ctx, file) }
	backup, err := c.Apply(time.Now(), reads, func() error { return reads(config) })
	if err != nil {
		return n, err
	}
	fmt.Fprintf(p.Out, "# removed from %s: %s\n# the old file: %s\n", c.Path, unit.Count(n, "block"), backup)
	return n, nil
}
