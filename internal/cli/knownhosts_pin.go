package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/base/shell"
	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/knownhosts/tidy"
)

// pinFlags are the flags of `sshpace known-hosts pin`.
type pinFlags struct {
	files         knownHostsFiles
	to, from, dir string
	connection    connectionFlags // -p
	write         string
	json          bool
}

func newKnownHostsPinCommand(sys System) *cobra.Command {
	var f pinFlags
	cmd := page("known-hosts-pin", &cobra.Command{
		Args: takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return runPin(sys, f, args[0]) },
	})
	flags := cmd.Flags()
	f.files.register(flags)
	flags.StringVar(&f.to, "to", "", "address or host name where the server is now")
	flags.StringVar(&f.from, "known-as", "", "name in known_hosts under which the key is known, such as old.example.com or [db1]:2222")
	flags.StringVar(&f.dir, "dir", "", "directory for the files of pinned servers (default ~/.ssh/known_hosts.pins)")
	flags.VarP(f.connection.PortFlag(), "port", "p", "port of the server")
	flags.StringVar(&f.write, "out", "", "write the lines to this file, which holds nothing else, instead of printing them")
	flags.BoolVar(&f.json, "json", false, "print the changes as JSON")
	return cmd
}

func runPin(sys System, f pinFlags, name string) error {
	if f.to == "" {
		return usageError("such as: sshpace known-hosts pin "+shell.Word(name)+" --to 198.51.100.7", "no address for %s", name)
	}
	x, err := f.files.open(sys, true) // the pinned file may know the key
	if err != nil {
		return err
	}
	if f.dir == "" {
		if f.dir, err = sshPath(sys, "known_hosts.pins"); err != nil {
			return err
		}
	}
	result, err := tidy.Pin(x, tidy.PinOptions{Name: name, Address: f.to, Port: int(f.connection.Port), From: f.from, Dir: f.dir})
	if err != nil {
		return &Error{Err: err, Hint: "a name may have letters, digits, dots, dashes and underscores", Code: ExitUsage}
	}
	if f.from != "" && len(result.Keys) == 0 {
		return withHint(fmt.Errorf("no host key is known for %s in %s", f.from, strings.Join(x.Files(), ", ")), "look with: sshpace known-hosts lookup "+shell.Word(f.from))
	}
	return findings.Pinned(sys.Stdout, sys.Stderr, result, f.write, f.json)
}
