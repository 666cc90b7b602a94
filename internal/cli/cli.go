// Package cli is the command line: one file per command, each of which turns flags into calls and
// nothing more. It is the only package that sees all others, prints, and decides on exit codes.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/helper"
	"sshpace/internal/dropin"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet/output"
	"sshpace/internal/programs"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/terminal"
)

// Exit codes. They are documented API: see the EXIT STATUS of the manual.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = fault.Misuse
	ExitFound        = fault.Found
	ExitUnreachable  = fault.Unreachable
	ExitInconclusive = fault.Inconclusive
	ExitHangup       = 129 // SIGHUP
	ExitInterrupted  = 130 // SIGINT
	ExitQuit         = 131 // SIGQUIT
	ExitUnread       = 141 // SIGPIPE
	ExitTerminated   = 143 // SIGTERM
)

// System is the outside world, so that tests can replace it.
type System struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// Signals are those that end a command: SIGINT, SIGTERM, SIGHUP, SIGQUIT. They end a command
	// that does not ask for them. nil for none.
	Signals proc.Signals
	// Hub and Page are set in the program that knows hubs. Page shows jobs until ctx ends.
	Hub  job.Hub
	Page func(context.Context, job.Page) error
}

// screen returns standard error, for drawing.
func (sys System) screen() *terminal.Screen { return terminal.NewScreen(sys.Stderr, sys.Getenv) }

// views returns the streams of a run for its views.
func (sys System) views() output.Streams {
	return output.Streams{Out: sys.Stdout, Err: sys.Stderr, Screen: sys.screen(), Getenv: sys.Getenv}
}

// Error is an error for people.
type Error = fault.Error

// usageError is an error in the flags or arguments.
func usageError(hint, format string, args ...any) error { return fault.Usage(hint, format, args...) }

// withHint adds to err what the user can do about it.
func withHint(err error, hint string) error { return fault.WithHint(err, hint) }

// hintOf returns the hint of err: what the user can do about it.
func hintOf(err error) string { return fault.HintOf(err) }

// Main runs one command line, with the name of the program in args[0], and returns the exit code.
func Main(ctx context.Context, sys System, args []string) int {
	if err := withHint(proc.EnoughFiles(), "raise the limit: ulimit -n 1024"); err != nil {
		return conclude(sys.Stderr, err)
	}
	mode := dropin.Mode(args[0])
	if mode == nil {
		others := maps.Clone(programs.Helpers)
		others[keyHolder] = sys.holdKeys()
		if exit, ran := helper.Run(ctx, args, sys.Stderr, others); ran {
			return exit
		}
	}
	if terminal.Closed(sys.Stdout) {
		return conclude(sys.Stderr, withHint(errors.New("standard output is closed"), "write to a file, or throw the output away: >/dev/null"))
	}
	screen := terminal.NewScreen(sys.Stderr, sys.Getenv)
	out := terminal.NewOutput(sys.Stdout, screen)
	sys.Stdout, sys.Stderr = out, screen
	ctx, sys.Signals = sys.Signals.Until(ctx)
	err := out.Verdict(runLine(ctx, sys, mode, args))
	if s := proc.CaughtBy(ctx); s != nil {
		proc.Die(s)
	}
	return conclude(sys.Stderr, err)
}

// runLine runs a command line, or a mode if there is one.
func runLine(ctx context.Context, sys System, mode dropin.Main, args []string) error {
	if mode != nil {
		return fault.Exit(runCompat(ctx, sys, mode, args[1:]))
	}
	root := newRoot(sys, args[1:])
	root.SetArgs(args[1:])
	return root.ExecuteContext(ctx)
}

// group is a group of commands that do the same kind of job.
type group struct {
	title    string
	commands []command
}

// command is a command with its name.
type command struct {
	name string
	make func(System) *cobra.Command
}

// more is the group of commands that belong to no other.
const more = "More"

// groups returns all commands, in the order of the help.
func groups() []group {
	return []group{
		{"Measure", []command{
			{"bench", newBenchCommand},
			{"transfer", newTransferCommand},
			{"programs", newProgramsCommand},
			{"login", newLoginCommand},
			{"latency", newLatencyCommand},
			{"limits", newLimitsCommand},
		}},
		{"Fix", []command{
			{"doctor", newDoctorCommand},
			{"advise", newAdviseCommand},
			{"config", newConfigCommand},
			{"known-hosts", newKnownHostsCommand},
			{"survey", newSurveyCommand},
		}},
		{"Results", []command{
			{"report", newReportCommand},
			{"compare", newCompareCommand},
			{"import", newImportCommand},
		}},
		{"Fleets", []command{
			{"run", newRunCommand},
			{"copy", newCopyCommand},
			{"fetch", newFetchCommand},
			{"jobs", newJobsCommand},
			{"hosts", newHostsCommand},
			{"keep", newKeepCommand},
			{"shell", newShellCommand},
		}},
		{more, []command{
			{"hub", newHubCommand},
			{"work", newWorkCommand},
			{"compat", newCompatCommand},
			{"completion", newCompletionCommand},
			{"man", newManCommand},
			{"version", newVersionCommand},
		}},
	}
}

// made makes the command that a line begins with, or all of them if it begins otherwise: the
// hundreds of flags of the others take a millisecond, which a login has no time for.
func made(sys System, line []string) (all []*cobra.Command) {
	first := strings.Join(line[:min(len(line), 1)], "")
	if first == "--version" || first == "-V" {
		first = "version"
	}
	for _, g := range groups() {
		for _, c := range g.commands {
			if first == c.name {
				return []*cobra.Command{c.make(sys)}
			}
		}
	}
	for _, g := range groups() {
		for _, c := range g.commands {
			cmd := c.make(sys)
			cmd.GroupID = g.title
			all = append(all, cmd)
		}
	}
	return all
}

// newRoot builds the part of the command tree that a line needs.
func newRoot(sys System, line []string) *cobra.Command {
	var version bool
	root := page("sshpace", &cobra.Command{
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			if version {
				return printVersion(sys)
			}
			return cmd.Help()
		},
	})
	root.Flags().BoolVarP(&version, "version", "V", false, "print the version")
	root.SetIn(sys.Stdin)
	root.SetOut(sys.Stdout)
	root.SetErr(sys.Stderr)
	root.SetUsageFunc(usage)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		fmt.Fprint(cmd.OutOrStdout(), cmd.UsageString()) // a disk that is full is noticed at the end
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(flagHint(cmd, err), "%s", flagError(err))
	})
	all := made(sys, line)
	if len(all) > 1 {
		for _, g := range groups() {
			root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		}
		root.SetHelpCommandGroupID(more)
	}
	root.AddCommand(all...)
	root.CompletionOptions.DisableDefaultCmd = true
	if len(all) > 1 {
		root.SetHelpCommand(newHelpCommand())
	}
	checkArguments(root)
	return root
}

// unknownCommand names the command that a word may have meant.
func unknownCommand(cmd *cobra.Command, word string) error {
	see := "see " + cmd.CommandPath() + " --help for the commands"
	if dropin.Mode(word) != nil && !cmd.HasParent() {
		see = "write it as sshpace compat " + word
	}
	if now := renamed[word]; now != "" && !cmd.HasParent() {
		return usageError("write it as "+now, "unknown command %q", word)
	}
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return usageError(fault.Near(cmd.CommandPath()+" ", word, names, see), "unknown command %q", strings.TrimPrefix(cmd.CommandPath()+" "+word, "sshpace "))
}

// checkArguments turns errors of a command and its subcommands about arguments, or about flags used
// together, into usage errors.
func checkArguments(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := cmp.Or(check(cmd, args), checkTogether(cmd.Flags()), checkGiven(cmd.Flags()), checkAmounts(cmd.Flags()))
		if coded := (*Error)(nil); err == nil || errors.As(err, &coded) {
			return err
		}
		return usageError("see "+cmd.CommandPath()+" --help", "%s", err)
	}
	for _, child := range cmd.Commands() {
		checkArguments(child)
	}
}

// conclude prints an error in the two-line form of the design and returns its exit code.
func conclude(w io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	if errors.Is(err, syscall.EPIPE) { // `| head` closed our output: not worth a word
		return ExitUnread
	}
	if !fault.Silent(err) {
		fmt.Fprintf(w, "sshpace: error: %s\n", oneLine(fault.Words(err)))
		if hint := hintOf(err); hint != "" {
			fmt.Fprintf(w, "sshpace: hint: %s\n", oneLine(hint))
		}
	}
	if coded := (interface{ ExitCode() int })(nil); errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return ExitFailed
}

// oneLine cleans a message that may quote a host.
func oneLine(s string) string { return termsafe.OneLine(s) }
