//go:build !linux

package cli

import (
	"context"
	"runtime"

	"sshpace/internal/bench/apply"

	"github.com/spf13/cobra"
)

// Measuring needs clocks and pipes that Linux alone has. Here these commands say so.

func newBenchCommand(System) *cobra.Command    { return elsewhere("bench") }
func newTransferCommand(System) *cobra.Command { return elsewhere("transfer") }
func newProgramsCommand(System) *cobra.Command { return elsewhere("programs") }
func newLoginCommand(System) *cobra.Command    { return elsewhere("login") }
func newLimitsCommand(System) *cobra.Command   { return elsewhere("limits") }
func newDoctorCommand(System) *cobra.Command   { return elsewhere("doctor") }
func newSurveyCommand(System) *cobra.Command   { return elsewhere("survey") }

func elsewhere(name string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              "On Linux only",
		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return linuxOnly("sshpace " + name) },
	}
}

func linuxOnly(what string) error {
	return usageError("measure on Linux; sshpace report, compare and advise read such results here, too",
		"%s needs Linux: the clocks that it reads do not exist on %s", what, runtime.GOOS)
}

// measure: proving measures, too.
func (f adviseFlags) measure(_, _ context.Context, _ System, _ *apply.Advised) error {
	return linuxOnly("advise --prove")
}
