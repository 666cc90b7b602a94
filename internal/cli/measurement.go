//go:build linux

package cli

import (
	"cmp"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/campaign"
	"sshpace/internal/fleet"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/ssh/openssh"
)

// resultFlags select the destination of a measurement.
type resultFlags struct {
	out, resume string
	json, quiet bool
	list        bool
	seed        uint64
}

func (f *resultFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.out, "out", "", "result file (default: a new one in the results directory)")
	flags.StringVar(&f.resume, "resume", "", "result to continue: its file, or a host for the newest result of that host")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	flags.BoolVar(&f.list, "list", false, "print the plan and measure nothing")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the random order (default: a random one)")
}

// bed returns the client and the server that the flags select.
func (f *endFlags) bed(sys System, to openssh.Destination, data string) testbed.Params {
	return testbed.Params{
		SSH: f.ssh, SSHD: f.sshd, Engine: record.EngineOpenSSH, Data: data, Connect: f.limit(), Destination: to, Route: f.params(sys),
	}
}

// output returns the destination of progress and records of a measurement, in file or a new one;
// command, with these options, resumes it.
func (f *resultFlags) output(sys System, command string, options []string, file *store.File) campaign.Output {
	o := sys.output(f.json)
	o.Quiet, o.Out, o.File = f.quiet, f.out, file
	o.Options = options
	o.GoOn = "sshpace " + command + " " + shell.Line(append(slices.Clone(options), "--resume")...) + " "
	return o
}

// measureFlags are the flags that bench, transfer and programs share.
type measureFlags struct {
	recordFlags
	direction, data    string
	ciphers, macs, kex []string
	policy             string
	roundFlags
}

// register defines the flags that all three have; data is their default payload.
func (f *measureFlags) register(flags *pflag.FlagSet, data string) {
	flags.StringVar(&f.data, "data", data, "payload: zero or random")
	flags.StringArrayVar(&f.ciphers, "cipher", nil, "only these ciphers: names or globs, such as aes128-gcm,aes*-ctr; repeatable")
	flags.StringArrayVar(&f.macs, "mac", nil, "only these MACs: names or globs; repeatable")
	f.endFlags.register(flags, fleet.ConnectTimeout)
	f.resultFlags.register(flags)
	f.direction = string(record.Upload)
}

// registerHost defines the flags that bench and transfer share, which measure hosts, too.
func (f *measureFlags) registerHost(flags *pflag.FlagSet) {
	flags.StringVar(&f.direction, "direction", f.direction, "upload, download or both")
	flags.StringArrayVar(&f.kex, "kex", nil, "only these key exchanges: names or globs; repeatable")
	flags.StringVar(&f.policy, "policy", "", "only choices that a security policy allows, such as modern or fips-140-3")
	f.connection.register(flags)
}

// check refuses flags that make no sense.
func (f *measureFlags) check() error {
	if err := cmp.Or(choose("direction", f.direction), choose("data", f.data)); err != nil {
		return err
	}
	switch {
	case f.budget < 0 || f.rounds < 0: // of a file
		return usageError("start a new result", "--budget %s and --rounds %d cannot be negative", time.Duration(f.budget), f.rounds)
	case f.rounds > maxRepeats:
		return usageError("--resume continues a run that has ended", "--rounds may be %d at most", maxRepeats)
	}
	return nil
}

func (f *measureFlags) directions() []record.Direction {
	if f.direction == "both" {
		return []record.Direction{record.Upload, record.Download}
	}
	return []record.Direction{record.Direction(f.direction)}
}

func (f *measureFlags) selection() testbed.Selection {
	return testbed.Selection{Patterns: map[alg.Kind][]string{alg.Cipher: f.ciphers, alg.MAC: f.macs, alg.Kex: f.kex}, Policy: f.policy}
}

// idleFlag is a row of flags without an effect: the condition, and the reason.
type idleFlag struct {
	flags []string
	when  bool
	why   string
}

// checkIdle refuses flags that were given without an effect.
func checkIdle(flags *pflag.FlagSet, idle []idleFlag) error {
	for _, line := range idle {
		for _, flag := range line.flags {
			if line.when && flags.Changed(flag) {
				return usageError("leave it out", "--%s has no meaning here: %s", flag, line.why)
			}
		}
	}
	return nil
}

// completeMeasurement teaches shells the values of a measurement's flags and its hosts.
func completeMeasurement(cmd *cobra.Command, sys System, f *endFlags) {
	fixed := func(flag string, values ...string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	for flag, values := range choices {
		fixed(flag, slices.DeleteFunc(slices.Clone(values), func(s string) bool { return s == "" })...)
	}
	for flag, kind := range map[string]alg.Kind{"cipher": alg.Cipher, "mac": alg.MAC, "kex": alg.Kex} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return testbed.ClientOffer(cmd.Context(), f.ssh).List(kind), cobra.ShellCompDirectiveNoFileComp
		})
	}
	_ = cmd.RegisterFlagCompletionFunc("resume", results(sys))
	completeHosts(cmd, sys, &f.connection)
}
