package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/fault"
)

// flagError is the text of a flag that could not be read, with the parser's own
// words for numbers replaced.
func flagError(err error) string {
	bad, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err.Error()
	}
	reason := "want a whole number"
	switch {
	case errors.Is(bad.Err, strconv.ErrRange):
		reason = "the number is out of range"
	case bad.Func == "ParseBool":
		reason = "want true or false"
	case bad.Func == "ParseFloat":
		reason = "want a number"
	}
	return strings.Replace(err.Error(), bad.Error(), reason, 1)
}

// flagHint is what to type instead of a flag that does not exist, or where to look.
func flagHint(cmd *cobra.Command, err error) string {
	see := "see " + cmd.CommandPath() + " --help"
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
