package cli

import (
	"errors"
	"fmt"

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
	if now := renamed["--"+bad.GetSpecifiedName()]; now != "" {
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
