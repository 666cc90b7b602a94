package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sshpace/internal/base/shell"
	"sshpace/internal/sys/file"
)

func newManCommand(sys System) *cobra.Command {
	var dir string
	cmd := page("man", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("to read about it: sshpace help "+shell.Line(args...), "man writes all pages into a directory")
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			if dir == "" {
				return usageError("name a directory, such as --dir ~/.local/share/man/man1", "no directory for the manual pages")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := writeManPages(newRoot(sys, nil), dir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(sys.Stdout, "wrote the manual pages to %s; read them with: man -l %s/sshpace.1\n", dir, dir)
			return err
		},
	})
	cmd.Flags().StringVar(&dir, "dir", "", "directory to write into; made if missing")
	return cmd
}

// writeManPages writes one page per command into dir. The text depends on the commands alone, so
// that committed pages can be checked for staleness. A link in the place of a page is replaced, not
// written through.
func writeManPages(cmd *cobra.Command, dir string) error {
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			if err := writeManPages(child, dir); err != nil {
				return err
			}
		}
	}
	return file.Replace(filepath.Join(dir, pageName(cmd)+".1"), []byte(manPageOf(cmd)), 0o644)
}
