package fault

import (
	"errors"
	"strconv"
)

// Number describes a malformed number in our own words instead of strconv's.
func Number(err error) string {
	bad, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case !ok:
		return err.Error()
	case errors.Is(bad.Err, strconv.ErrRange):
		return "the number is out of range"
	case bad.Func == "ParseBool":
		return "want true or false"
	case bad.Func == "ParseFloat":
		return "want a number"
	case bad.Func == "ParseUint":
		return "want a whole number from 0"
	}
	return "want a whole number"
}
