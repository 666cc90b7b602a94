package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/show/document"
)

// each calls do for a command and all below it.
func each(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Name() == "completion" || cmd.Name() == "help" { // cobra's own
		return
	}
	do(cmd)
	for _, child := range cmd.Commands() {
		each(child, do)
	}
}

func allCommands(t *testing.T, do func(*cobra.Command)) {
	t.Helper()
	each(newRoot(System{Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}, nil), func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		do(cmd)
	})
}

// Every flag is in one group of the help, and no group names a flag that no command
// has.
func TestEveryFlagIsInAGroup(t *testing.T) {
	known := map[string]bool{}
	allCommands(t, func(cmd *cobra.Command) {
		shown := 0
		for _, g := range groupFlags(cmd) {
			shown += len(g.flags)
		}
		visible := 0
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			known[f.Name], known[cmd.Name()+" "+f.Name] = true, true
			if f.Hidden {
				return
			}
			if visible++; !slices.ContainsFunc(flagGroups, func(g struct {
				title string
				names []string
			}) bool {
				return groupHolds(g.names, cmd, f)
			}) {
				t.Errorf("%s --%s is in no group", cmd.CommandPath(), f.Name)
			}
		})
		if shown != visible {
			t.Errorf("%s shows %d flags of %d", cmd.CommandPath(), shown, visible)
		}
	})
	for _, g := range flagGroups {
		for _, name := range g.names {
			if !known[name] {
				t.Errorf("%s: no command has --%s", g.title, name)
			}
		}
	}
}

// What stands behind a flag says what it is, not which type a program keeps it in.
func TestPlaceholders(t *testing.T) {
	allCommands(t, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			word := placeholderOf(f)
			for _, kind := range []string{"STRING", "INT", "FLOAT", "UINT", "ARRAY", "SLICE", "COUNT", "TIME"} {
				if strings.HasPrefix(strings.TrimSuffix(word, "64"), kind) && word != "COUNTxSIZE" {
					t.Errorf("%s --%s %s", cmd.CommandPath(), f.Name, word)
				}
			}
		})
	})
}

// README.md and the manual have the same exit codes, doc/method.md and the manual
// the same words.
func TestManualAgreesWithTheDocuments(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exitStatus[:5] {
		if row := fmt.Sprintf("| %d | %s |", e.code, e.meaning); !strings.Contains(string(readme), row) {
			t.Errorf("README.md has no row %q", row)
		}
	}
	method, err := os.ReadFile("../../doc/method.md")
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(string(method)), " ")
	for _, word := range document.Glossary {
		if !strings.Contains(flat, word.Value) {
			t.Errorf("doc/method.md does not explain %q as the manual does: %s", word.Name, word.Value)
		}
	}
}

// The pages have the sections that man-pages(7) asks for.
func TestSectionsOfTheManual(t *testing.T) {
	allCommands(t, func(cmd *cobra.Command) {
		page := manPageOf(cmd)
		want := []string{"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "FILES"}
		if cmd.HasExample() {
			want = append(want, "EXAMPLES")
		}
		if glossaryOf[cmd.Name()] {
			want = append(want, "GLOSSARY")
		}
		for _, section := range want {
			if strings.Count(page, "\n.SH "+section+"\n") != 1 {
				t.Errorf("%s: section %s", cmd.CommandPath(), section)
			}
		}
	})
}
