package hostlist

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/proc"
)

// Command asks a user's program for groups. sh runs it with GROUP in its environment, and it prints
// sets; with an empty GROUP it prints the names of all groups. The name never becomes a part of the
// command.
type Command struct {
	ctx   context.Context
	name  string // for messages
	line  func(group string) string
	empty bool              // a group without hosts is no mistake
	known map[string]string // answers, memo
}

var _ hostset.Groups = (*Command)(nil)

// NewCommand returns a command that runs at most until ctx ends.
func NewCommand(ctx context.Context, line string) *Command {
	return &Command{ctx, "--groups-command", func(string) string { return line }, false, map[string]string{}}
}

// NewUpcalls returns a source of ClusterShell's groups.conf, which has a line for each group.
func NewUpcalls(ctx context.Context, line func(group string) string) *Command {
	return &Command{ctx, "groups.conf", line, true, map[string]string{}}
}

// Group asks for one group. An empty answer means that there is no such group: an exclusion that
// excludes nothing must be noticed.
func (c *Command) Group(source, group string) ([]string, error) {
	var sets []string
	if source == "" && group != "" {
		answer, err := c.ask(group)
		if err != nil {
			return nil, err
		}
		sets = strings.Fields(answer)
	}
	if len(sets) == 0 && !c.empty {
		known, _ := c.Names("")
		return nil, &hostset.UnknownGroupError{Group: group, Where: "the answer of " + c.name, Known: known}
	}
	return sets, nil
}

// Names asks for all groups. Programs name one for each of its hosts.
func (c *Command) Names(string) ([]string, error) {
	answer, err := c.ask("")
	return slices.Compact(slices.Sorted(slices.Values(strings.Fields(answer)))), err
}

func (c *Command) ask(group string) (string, error) {
	if answer, ok := c.known[group]; ok {
		return answer, nil
	}
	answer, _, err := asked(c.ctx, func(stderr io.Writer) (string, error) {
		return proc.Shell(c.ctx, c.line(group), []string{"GROUP=" + group}, stderr, file.List)
	})
	if err != nil {
		return "", fmt.Errorf("%s for group %q: %w", c.name, group, err)
	}
	c.known[group] = answer
	return answer, nil
}
