package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/knownhosts/index"
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
	flags.StringVar(&f.write, "out", "", "file that gets the lines, and holds nothing else, instead of printing them")
	flags.BoolVar(&f.json, "json", false, "print what was done as JSON")
	return cmd
}

func runPin(sys System, f pinFlags, name string) error {
	if f.to == "" {
		return usageError("such as: sshpace known-hosts pin "+shell.Word(name)+" --to 198.51.100.7", "no address for %s", name)
	}
	x, err := f.index(sys)
	if err != nil {
		return err
	}
	if f.dir == "" {
		if f.dir, err = sshFolder(sys, "known_hosts.pins"); err != nil {
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
	return f.print(sys, result)
}

// index opens the files that were named; the default one may be missing, since
// the pinned file may know the key.
func (f *pinFlags) index(sys System) (*index.Index, error) {
	if len(f.files) > 0 {
		return f.files.open(sys)
	}
	own, err := sshFolder(sys, "known_hosts")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(own); err != nil {
		return index.Open(), nil
	}
	return index.Open(own), nil
}

func (f *pinFlags) print(sys System, r tidy.PinResult) error {
	if f.write != "" {
		var err error
		if f.write, err = filepath.Abs(f.write); err != nil { // Include takes other names from ~/.ssh
			return err
		}
		if err := tidy.WritePinConfig(f.write, r); err != nil {
			return withHint(err, "name a file that this command has written, or a new one, with --out")
		}
	}
	for _, key := range r.Keys {
		fmt.Fprintf(sys.Stderr, "sshpace: %s is pinned to %s in %s\n", r.Name, key, r.File)
	}
	if len(r.Keys) == 0 {
		fmt.Fprintf(sys.Stderr, "sshpace: no key of %s is known; compare the fingerprint when ssh asks at the first login, then run this again\n", r.Name)
	}
	switch {
	case f.json:
		return termsafe.WriteJSON(sys.Stdout, struct {
			Schema string `json:"schema"`
			tidy.PinResult
		}{"sshpace.known-hosts.pin/1", r}, "  ")
	case f.write != "":
		_, err := fmt.Fprintf(sys.Stderr, "sshpace: wrote %s; ssh reads it if ~/.ssh/config starts with: Include %s\n", f.write, f.write)
		return err
	}
	_, err := io.WriteString(sys.Stdout, r.Config)
	return err
}
