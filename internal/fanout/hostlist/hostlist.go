// Package hostlist works out which hosts a command is for: from the user's flags, and from the
// lists of other programs (Ansible, ClusterShell). It connects to none, and executes nothing that a
// file names, only the programs that the user named: an inventory script, and commands.
package hostlist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/route"
)

// Surroundings hold everything that sets of hosts may refer to.
type Surroundings struct {
	Stdin   io.Reader
	Stderr  io.Writer // for warnings
	Getenv  func(string) string
	History *history.Store
	Config  *route.Router
}

// Selection holds the user's flags about hosts.
type Selection struct {
	hostset.Selection          // Stdin among its Sets: sets, line by line; its Files are those of Lists
	Lists             []string // names of files of hosts; Stdin: standard input
	Sources
	AsNamed bool // data of inventories about the hosts is not wanted
	known   *Inventory
}

// Variables looks up variables of a host in the inventories, once Hosts has read them.
func (f *Selection) Variables(h host.Host, names []string) (map[string]string, error) {
	return f.known.Variables(h, names)
}

// Stdin is the name of standard input.
const Stdin = "-"

// ReadsStdin reports whether hosts come from standard input.
func (f *Selection) ReadsStdin() bool {
	return slices.Contains(f.Sets, Stdin) || slices.Contains(f.Lists, Stdin)
}

// None reports whether no hosts are named.
func (f *Selection) None() bool { return len(f.Sets)+len(f.Lists) == 0 }

// Hosts works the selection out.
func (f *Selection) Hosts(ctx context.Context, from Surroundings) ([]host.Host, error) {
	sel := f.Selection
	sel.Sets = nil
	if f.None() {
		return nil, fault.Usage("name them before the command: -w SET, --hosts-file FILE, or --inventory FILE -w @GROUP", "no hosts given")
	}
	for _, name := range f.Lists {
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
	f.known = sources.inventory
	sel.Options = sources.Options()
	if f.AsNamed {
		sel.Options.Complete = sources.inventory.Named
	}
	hosts, err := sel.Hosts()
	sources.Warn(from.Stderr)
	if err != nil {
		hint := cmp.Or(fault.HintOf(err), "sets are such as web[1-9]!web3,@db, and files --hosts-file FILE; sshpace hosts -LL lists the groups")
		if errors.Is(err, hostset.ErrNoGroups) {
			hint = "write them as name: set into ~/.config/sshpace/groups or a file for --groups, or give an --inventory"
		}
		if set := braces(f.Sets, sel.Options); set != "" {
			hint = "for a set of hosts write " + set + ", in quotes"
		}
		return nil, &fault.Error{Err: err, Hint: hint, Code: fault.Misuse}
	}
	for _, h := range hosts {
		if sources.inventory.isGroup(h.Name) {
			fmt.Fprintf(from.Stderr, "sshpace: warning: %s is taken for a host; the group of the inventory is @%s\n", h.Name, h.Name)
		}
	}
	return hosts, nil
}

// braces rewrites a set with the braces of a shell into our notation; "" if there is none.
func braces(sets []string, opt hostset.Options) string {
	for _, set := range sets {
		written := strings.NewReplacer("{", "[", "}", "]", "..", "-").Replace(set)
		if _, err := hostset.Expand(written, opt); err == nil && strings.Contains(set, "{") {
			return written
		}
	}
	return ""
}
