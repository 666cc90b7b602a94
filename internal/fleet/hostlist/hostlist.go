// Package hostlist works out which hosts a command is for: from what the user wrote, and from
// the lists that other programs keep (Ansible, ClusterShell). It connects to none, and
// executes nothing that a file names; only Command runs a program, which the user gave.
package hostlist

import (
	"context"
	"io"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/route"
)

// Surroundings are what sets of hosts may refer to.
type Surroundings struct {
	Stdin   io.Reader
	Stderr  io.Writer // for warnings
	Getenv  func(string) string
	History *history.Store
	Config  *route.Router
}

// Selection is what the user says about the hosts.
type Selection struct {
	Sets    []string // Stdin: sets, line by line
	Exclude []string
	Files   []string
	Labels  []string
	Sources

	Steps   []hostset.Step
	EmptyOK bool // no hosts at all are no error
	AsNamed bool // what inventories know of the hosts is not wanted
}

// Stdin is the name of standard input.
const Stdin = "-"

// ReadsStdin tells whether hosts come from standard input.
func (f *Selection) ReadsStdin() bool {
	return slices.Contains(f.Sets, Stdin) || slices.Contains(f.Files, Stdin)
}

// Hosts works the selection out.
func (f *Selection) Hosts(ctx context.Context, from Surroundings) ([]host.Host, error) {
	sel := hostset.Selection{Labels: f.Labels, Exclude: f.Exclude, Steps: f.Steps, EmptyOK: f.EmptyOK}
	if len(f.Sets) == 0 && len(f.Files) == 0 {
		return nil, fault.Usage("name them with -w SET or --hosts-file FILE", "no hosts given")
	}
	for _, name := range f.Files {
		file, err := ReadFile(ctx, from.Stdin, name)
		if err != nil {
			return nil, &fault.Error{Err: err, Hint: "give a readable file to --hosts-file", Code: fault.Misuse}
		}
		sel.Files = append(sel.Files, file)
	}
	for _, set := range f.Sets {
		if set != Stdin {
			sel.Sets = append(sel.Sets, set)
			continue
		}
		file, err := readInput(ctx, from.Stdin, hostset.ReadSets)
		if err != nil {
			return nil, &fault.Error{Err: err, Hint: "write one set of hosts a line", Code: fault.Misuse}
		}
		sel.Files = append(sel.Files, file)
	}
	sources, err := f.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	sel.Options = sources.Options()
	if f.AsNamed {
		sel.Options.Complete = nil
	}
	hosts, err := sel.Hosts()
	sources.Warn(from.Stderr)
	if err != nil {
		return nil, &fault.Error{Err: err, Hint: "sets are such as web[1-9]!web3,@db; sshpace hosts -LL lists the groups", Code: fault.Misuse}
	}
	return hosts, nil
}
