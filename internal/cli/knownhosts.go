package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/ssh/knownhosts/index"
)

func newKnownHostsCommand(sys System) *cobra.Command {
	cmd := parent(page("known-hosts", &cobra.Command{}))
	cmd.AddCommand(
		newKnownHostsSplitCommand(sys),
		newKnownHostsLookupCommand(sys),
		newKnownHostsLintCommand(sys),
		newKnownHostsPinCommand(sys),
		newKnownHostsBenchCommand(sys),
		newKnownHostsScanCommand(sys),
	)
	return cmd
}

// knownHostsFiles are the files to read.
type knownHostsFiles []string

func (f *knownHostsFiles) register(flags *pflag.FlagSet) {
	flags.StringArrayVar((*[]string)(f), "known-hosts", nil, "file to read; repeatable, in the order in which ssh reads them (default ~/.ssh/known_hosts)")
}

// open makes an index of the files, which must all exist: a mistyped name is not an empty file.
// mayMiss allows the user's own to be missing.
func (f knownHostsFiles) open(sys System, mayMiss bool) (*index.Index, error) {
	files := []string(f)
	if len(files) == 0 {
		own, err := sshPath(sys, "known_hosts")
		if err != nil {
			return nil, err
		}
		files = []string{own}
	}
	for _, file := range files {
		_, err := os.Stat(file)
		switch {
		case err != nil && mayMiss && len(f) == 0:
			return index.Open(), nil
		case err != nil:
			hint := "check the name of the file"
			if len(f) == 0 {
				hint = "name the file"
			}
			return nil, &Error{Err: err, Hint: hint, Code: ExitUsage}
		}
	}
	x := index.Open(files...)
	for _, err := range x.Problems() {
		return nil, &Error{Err: err, Hint: "name another file with --known-hosts", Code: ExitUsage}
	}
	return x, nil
}

// sshPath returns the path of a file in the user's ~/.ssh.
func sshPath(sys System, name string) (string, error) {
	home := sys.Getenv("HOME")
	if home == "" {
		return "", usageError("set HOME, or name all files by flags", "no home directory")
	}
	return filepath.Join(home, ".ssh", name), nil
}
