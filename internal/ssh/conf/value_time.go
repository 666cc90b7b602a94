package conf

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
)

// parseTime reads time formats such as 90, 5m or 1h30m (sshd_config(5) TIME
// FORMATS). "none" leaves the keyword unset, as in ssh.
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

var timeUnits = map[byte]int{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800}

// seconds adds up numbers with units (misc.c:convtime).
func seconds(s string, v Version) (total int, ok bool) {
	if v.AtLeast(decimalTimes) {
		return decimalSeconds(s)
	}
	for s != "" {
		s = strings.TrimPrefix(strings.TrimLeft(s, spaces), "+")
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		n, err := strconv.Atoi(s[:digits])
		if err != nil {
			return 0, false
		}
		unit := 1
		if s = s[digits:]; s != "" {
			if unit = timeUnits[wildcard.Lower(s[:1])[0]]; unit == 0 {
				return 0, false
			}
			s = s[1:]
		}
		if n > math.MaxInt32/unit || total > math.MaxInt32-n*unit {
			return 0, false
		}
		total, ok = total+n*unit, true
	}
	return total, ok
}

// quantity is one number with its unit; only seconds have decimals.
var quantity = wildcard.Regexp(`^(?:([0-9]*\.[0-9]+|[0-9]+)(?:[sS]|$)|([0-9]+)([mhdwMHDW]))`)

// decimalSeconds reads seconds at most once, and drops their decimals.
func decimalSeconds(s string) (total int, ok bool) {
	sum, once := 0.0, false
	for ; s != ""; ok = true {
		m := quantity().FindStringSubmatch(s)
		if m == nil || m[1] != "" && once {
			return 0, false
		}
		once = once || m[1] != ""
		n, err := strconv.ParseFloat(m[1]+m[2], 64)
		if err != nil {
			return 0, false
		}
		if m[3] != "" {
			n *= float64(timeUnits[wildcard.Lower(m[3])[0]])
		}
		sum, s = sum+n, s[len(m[0]):]
	}
	return int(sum), ok && sum <= math.MaxInt32
}
