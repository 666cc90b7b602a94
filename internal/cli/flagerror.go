package cli

import (
	"errors"
	"strconv"
	"strings"
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
