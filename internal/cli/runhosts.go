package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/route"
)

// fleetHosts are the flags that say which hosts a command is for.
type fleetHosts struct {
	sets    []string
	exclude []string
	files   []string
	labels  []string
	hostSources

	steps   []hostset.Step
	emptyOK bool // no hosts at all are no error
	asNamed bool // what inventories know of the hosts is not wanted
}

func (f *fleetHosts) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.sets, "hosts", "w", nil, "set of hosts, such as web[1-9],@db!db3; - reads them from standard input; repeatable")
	flags.StringArrayVarP(&f.exclude, "exclude", "x", nil, "set of hosts to leave out; repeatable")
	flags.StringArrayVar(&f.files, "hosts-file", nil, "file of hosts, one a line as user@host:port, %label begins a section; repeatable")
	flags.StringArrayVar(&f.labels, "label", nil, "only these sections of the hosts files; repeatable")
	f.hostSources.register(flags)
}

const stdinName = "-"

// readsStdin tells whether hosts come from standard input.
func (f *fleetHosts) readsStdin() bool {
	for _, list := range [][]string{f.sets, f.files} {
		for _, s := range list {
			if s == stdinName {
				return true
			}
		}
	}
	return false
}

// hosts works the selection out.
func (f *fleetHosts) hosts(ctx context.Context, sys System, store *history.Store, config *route.Router) ([]host.Host, error) {
	sel := hostset.Selection{Labels: f.labels, Exclude: f.exclude, Steps: f.steps, EmptyOK: f.emptyOK}
	files := f.files
	for _, set := range f.sets {
		if set == stdinName {
			files = append(files, stdinName)
			continue
		}
		sel.Sets = append(sel.Sets, set)
	}
	if len(sel.Sets) == 0 && len(files) == 0 {
		return nil, usageError("name them with -w SET or --hosts-file FILE", "no hosts given")
	}
	for _, name := range files {
		file, err := readHostsFile(ctx, sys, name)
		if err != nil {
			return nil, &Error{Err: err, Hint: "give a readable file to --hosts-file", Code: ExitUsage}
		}
		sel.Files = append(sel.Files, file)
	}
	sources, err := f.open(ctx, sys, store, config)
	if err != nil {
		return nil, err
	}
	sel.Options = sources.options()
	if f.asNamed {
		sel.Options.Complete = nil
	}
	hosts, err := sel.Hosts()
	sources.warn(sys.Stderr)
	if err != nil {
		return nil, &Error{Err: err, Hint: "sshpace hosts shows what a set stands for", Code: ExitUsage}
	}
	return hosts, nil
}

func listHosts(w io.Writer, hosts []host.Host) error {
	b := bufio.NewWriter(w)
	for _, h := range hosts {
		fmt.Fprintln(b, h.Exact())
	}
	return b.Flush()
}
