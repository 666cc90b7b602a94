package cli

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// seconds is a flag's duration: 90s, 2m or, as in ssh_config, a plain number of
// seconds. It is never negative.
type seconds time.Duration

// maxSeconds is as much as a time.Duration holds.
const maxSeconds = math.MaxInt64 / float64(time.Second) / 2

func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, bad := strconv.ParseFloat(text, 64); bad == nil && n >= 0 && n <= maxSeconds {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return errors.New("want a time such as 10, 10s or 2m")
	}
	*s = seconds(d)
	return nil
}

func (s *seconds) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Type is what the help shows as the value.
func (*seconds) Type() string { return "time" }
