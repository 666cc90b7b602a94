package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sshpace/internal/sys/edit"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newManCommand(sys System) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "man --dir DIR",
		Short:   "Write the manual pages",
		Example: `  sshpace man --dir ~/.local/share/man/man1`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if dir == "" {
				return usageError("name a directory, such as --dir ~/.local/share/man/man1", "no directory for the manual pages")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := WriteManPages(newRoot(sys, nil), dir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(sys.Stdout, "wrote the manual pages to %s; read them with: man -l %s/sshpace.1\n", dir, dir)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory to write into; made if missing")
	return cmd
}

// WriteManPages writes one page per command into dir. The text depends on the
// commands alone, so that committed pages can be checked for staleness. A link in
// the place of a page is replaced, not written through.
func WriteManPages(root *cobra.Command, dir string) error {
	root.DisableAutoGenTag = true
	released := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC) // of Version; fixed, so that pages are reproducible
	header := &doc.GenManHeader{Section: "1", Source: "sshpace " + Version, Manual: "sshpace manual", Date: &released}
	pages, err := os.MkdirTemp("", "sshpace-man-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(pages)
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	entries, err := os.ReadDir(pages)
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(pages, entry.Name()))
		if err == nil {
			err = edit.Replace(filepath.Join(dir, entry.Name()), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return err
}
