package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// takes checks the number of a command's arguments, at most any number for -1; the command's use
// line names them.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "sshpace ")
		_, form, _ := strings.Cut(cmd.Use, " ")
		first, _, _ := strings.Cut(form, " ")
		noun := strings.ReplaceAll(strings.Trim(first, "[]."), "|", " or ")
		hint := "write it as sshpace " + strings.TrimSpace(name+" "+form)
		switch {
		case len(args) < least && len(args) > 0:
			return usageError(hint, "%s needs more than one %s", name, noun)
		case len(args) < least:
			return usageError(hint, "%s needs a %s", name, noun)
		case most == 0:
			return usageError(hint, "%s takes no argument, got %q", name, args[0])
		}
		return usageError(hint, "%s takes one %s, got %d", name, noun, len(args))
	}
}

// parent makes a command that only has subcommands: it lists them, and names the one that a word
// may have meant.
func parent(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return cmd.Help()
	}
	return cmd
}

// newHelpCommand returns the command that shows the same as --help.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) == 0 {
				about.InitDefaultHelpFlag()
				return about.Help()
			}
			if about == nil || len(rest) == 0 {
				about, rest = cmd.Root(), args
			}
			return unknownCommand(about, rest[0])
		},
	}
}
