package conf

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
)

// parseTime reads time formats such as 90, 5m or 1h30m (sshd_config(5) TIME FORMATS). "none" leaves
// the keyword unset, as in ssh.
func parseTime(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil || arg == "none" {
		return nil, err
	}
	secs, ok := seconds(arg, in.version)
	if !ok {
		return nil, fmt.Errorf("invalid time value %q", arg)
	}
	return []string{strconv.Itoa(secs)}, nil
}

var timeUnits = map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

// timeTerm matches the blanks that strtol(3) skips, a number, and its unit; without one it is the
// last.
var timeTerm = wildcard.Regexp(`^([ \t\n\v\f\r]*\+?)([0-9]*\.[0-9]+|[0-9]+)([smhdwSMHDW]|$)`)

// seconds adds up numbers with units (misc.c:convtime). Since release 10.3 seconds may have
// decimals, which are dropped, occur once, and nothing is skipped.
func seconds(s string, v Version) (total int, ok bool) {
	sum, once, anew := 0.0, false, v.AtLeast(decimalTimes)
	for ; s != ""; ok = true {
		m := timeTerm().FindStringSubmatch(s)
		if m == nil {
			return 0, false
		}
		unit, decimals := timeUnits[wildcard.Lower(m[3])], strings.Contains(m[2], ".")
		switch {
		case !anew && decimals, anew && (m[1] != "" || unit == 1 && once || unit > 1 && decimals):
			return 0, false
		}
		once = once || unit == 1
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return 0, false
		}
		sum, s = sum+n*unit, s[len(m[0]):]
	}
	return int(sum), ok && sum <= math.MaxInt32
}
