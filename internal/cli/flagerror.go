package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/fault"
	"sshpace/internal/bench/rank"
)

// flagError describes an error in a flag in our words.
func flagError(err error) string {
	if bad, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return "unknown flag " + dashed(bad.GetSpecifiedName(), bad.GetSpecifiedShortnames())
	}
	if bad, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return dashed(bad.GetSpecifiedName(), bad.GetSpecifiedShortnames()) + " needs a value"
	}
	if bad, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return "unknown flag " + bad.GetSpecifiedFlag()
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Sprintf("--%s %q: %s", bad.GetFlag().Name, bad.GetValue(), fault.Number(bad.Unwrap()))
	}
	return err.Error()
}

// dashed returns a flag as it was typed; letters are several short flags in one word.
func dashed(name, letters string) string {
	if letters != "" {
		return "-" + name
	}
	return "--" + name
}

// onLaunchers is what goes there.
const onLaunchers = "sshpace run --hub ADDRESS; launchers carry no files, and run commands and scripts only"

// renamed maps names of commands and flags that are used elsewhere, such as in other programs for
// many hosts, or were used before.
var renamed = map[string]string{
	"handshake": "sshpace login", "ping": "sshpace latency", "machine": "sshpace limits", "explain": "sshpace config",
	"history": "sshpace run --history", "exec": "sshpace run", "ssh": "sshpace run", "scp": "sshpace copy", "put": "sshpace copy", "push": "sshpace copy", "get": "sshpace fetch", "pull": "sshpace fetch",
	"--mode": "sshpace transfer --only", "--pairs": "sshpace programs --only", "--factor": "--only", "--runs": "--rounds",
	"--forks": "--fanout N", "--parallel": "--fanout N", "--jobs": "--fanout N", "-P": "--fanout N",
	"--serial": "--batch N", "--rolling": "--batch N", "--delay": "--batch 1 --pause DURATION",
	"--stop-on-error": "--fail-fast", "--any-errors-fatal": "--max-fail 0",
	"--become": "--sudo, which asks for the password once", "--ask-sudo-pass": "--sudo, which asks for the password once",
	"--ask-become-pass": "--sudo, which asks for the password once", "-K": "--sudo, which asks for the password once", "-k": "--ask-pass",
	"--retries": "--retry-for DURATION", "--attempts": "--retry-for DURATION",
	"--rerun": "--hosts @last:failed", "--failed": "--rerun failed,unreachable", "--retry-failed": "--rerun failed,unreachable", "--retry": "--rerun failed,unreachable",
	"--out": "--dir DIR", "--outdir": "--dir DIR", "--output": "--dir DIR", "--dry-run": "--list", "--check": "--list", "--table": "--rows", "--expand": "--names",
	"--group": "--hosts @GROUP", "-g": "--hosts @GROUP", "--limit": "--hosts SET", "-a": "--hosts @all", "--user": "--login USER", "-u": "--login USER",
	"--hub": onLaunchers, "--pool": onLaunchers, "--pools": onLaunchers,
	"-t": "--timeout DURATION; for a terminal --tty, or ssh -t HOST to type into it", "-I": "--stdin", "--env": "sshpace run -w SET -- env NAME=VALUE COMMAND",
}

// fits reports whether a hint that begins with a flag names only existing flags.
func fits(flags *pflag.FlagSet, hint string) bool {
	for word := range strings.FieldsSeq(hint) {
		name, long := strings.CutPrefix(strings.TrimRight(word, ",;"), "--")
		if long && flags.Lookup(name) == nil {
			return !strings.HasPrefix(hint, "--")
		}
	}
	return true
}

// flagHint says what to type instead of a flag that does not exist, or where to look.
func flagHint(cmd *cobra.Command, err error) string {
	see := "see " + cmd.CommandPath() + " --help"
	if bad, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return "write it as --" + bad.GetFlag().Name + flagValue(bad.GetFlag()) + ": " + meaning(bad.GetFlag())
	}
	bad, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return see
	}
	typed := dashed(bad.GetSpecifiedName(), bad.GetSpecifiedShortnames())
	if now := renamed[typed]; now != "" && fits(cmd.Flags(), now) {
		return "write it as " + now
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return fault.Near("--", bad.GetSpecifiedName(), names, see)
}

// choices lists flags with a fixed set of values; "" among them: it may be left empty.
var choices = map[string][]string{
	"direction": {"upload", "download", "both"},
	"data":      {"zero", "random"},
	"engine":    {"openssh", "native", ""},
	"server":    {"openssh", "native", ""},
	"rank-by":   {string(rank.Throughput), string(rank.Cost), string(rank.Auto)},
}

// choose refuses a value that is not one of a flag's choices.
func choose(flag, value string) error {
	if slices.Contains(choices[flag], value) {
		return nil
	}
	values := slices.DeleteFunc(slices.Clone(choices[flag]), func(s string) bool { return s == "" })
	return usageError(fault.Near("--"+flag+" ", value, values, "use "+strings.Join(values, " or ")), "unknown --%s %q", flag, value)
}
