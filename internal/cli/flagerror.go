package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/fault"
)

// flagError is what is wrong with a flag, in our words.
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

// dashed is a flag as it was typed; letters are those that stood together.
func dashed(name, letters string) string {
	if letters != "" {
		return "-" + name
	}
	return "--" + name
}

// otherTools are flags that other programs for many hosts have for what ours do.
var otherTools = map[string]string{
	"--forks": "--fanout N", "--parallel": "--fanout N", "--jobs": "--fanout N", "-P": "--fanout N",
	"--serial": "--batch N", "--rolling": "--batch N", "--delay": "--batch 1 --pause DURATION",
	"--fail-fast": "--max-fail 0", "--stop-on-error": "--max-fail 0", "--any-errors-fatal": "--max-fail 0",
	"--become": "--sudo, which asks for the password once", "--ask-sudo-pass": "--sudo, which asks for the password once",
	"--ask-become-pass": "--sudo, which asks for the password once", "-K": "--sudo, which asks for the password once", "-k": "--ask-pass",
	"--failed": "--rerun failed,unreachable", "--retry-failed": "--rerun failed,unreachable", "--retry": "--rerun failed,unreachable",
	"--out": "--dir DIR", "--outdir": "--dir DIR", "--output": "--dir DIR", "--dry-run": "--list", "--check": "--list", "--table": "--rows",
	"--group": "--hosts @GROUP", "-g": "--hosts @GROUP", "--limit": "--hosts SET", "-a": "--hosts @all", "--user": "--login USER", "-u": "--login USER",
	"-t": "--timeout DURATION; for a terminal use ssh -t HOST", "-I": "--stdin", "--env": "sshpace run -w SET -- env NAME=VALUE COMMAND",
}

// has tells whether all flags that a text begins words with are there.
func has(flags *pflag.FlagSet, text string) bool {
	for word := range strings.FieldsSeq(text) {
		if name, long := strings.CutPrefix(strings.TrimRight(word, ",;"), "--"); long && name != "" && flags.Lookup(name) == nil {
			return false
		}
	}
	return true
}

// flagHint is what to type instead of a flag that does not exist, or where to look.
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
	if now := renamed[typed]; now != "" {
		return "write it as " + now
	}
	if now := otherTools[typed]; now != "" && has(cmd.Flags(), "--hosts "+now) {
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
