package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Quantities as people write them on a command line. Each has the methods that a flag needs: Set,
// String, and Type, which is the name of its value in the help.

// Limit is an amount of data in bytes, as people write it: 256M, 1G; 0 is none.
type Limit int64

// Set parses a number of bytes, with or without a prefix; 0 means no limit.
func (b *Limit) Set(text string) error {
	if text == "0" {
		*b = 0
		return nil
	}
	n, err := ParseBytes(text)
	if err == nil {
		*b = Limit(n)
	}
	return err
}

// String returns a text that Set reads.
func (b *Limit) String() string {
	n, prefix := int64(*b), 0
	for n != 0 && n%1024 == 0 && prefix < len("KMGT") {
		n /= 1024
		prefix++
	}
	return strconv.FormatInt(n, 10) + "KMGT"[max(0, prefix-1):prefix]
}

// Type names the value in the help.
func (*Limit) Type() string { return "size" }

// Rate is bytes per second, as people write them: 12M, 12MB/s and 96Mbit/s are the same, decimal as
// rates are written everywhere; 12MiB/s is binary. 0 is none.
type Rate float64

// Set parses text.
func (r *Rate) Set(text string) error {
	number, isPerSecond := strings.CutSuffix(strings.ToUpper(strings.TrimSpace(text)), "/S")
	number, bits := strings.CutSuffix(number, "BIT")
	number, bytes := strings.CutSuffix(number, "B")
	number, binary := strings.CutSuffix(number, "I")
	digits := strings.TrimRight(number, "KMGT")
	value, err := strconv.ParseFloat(digits, 64)
	power := len(number) - len(digits)
	if err != nil || power > 1 || !(value >= 0) || value > 1e15 || bits && (bytes || binary) || (bits || binary) && !isPerSecond {
		return errors.New("want bytes per second, such as 12M, 12MB/s or 100Mbit/s")
	}
	base := 1000.0
	if binary {
		base = 1024
	}
	if bits {
		value /= 8
	}
	if power == 1 {
		value *= math.Pow(base, float64(1+strings.Index("KMGT", number[len(digits):])))
	}
	*r = Rate(value)
	return nil
}

// String returns a text that Set reads; "" is none.
func (r *Rate) String() string {
	if *r == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*r)/1e6, 'g', -1, 64) + "MB/s"
}

// Type names the value in the help.
func (*Rate) Type() string { return "rate" }

// Switch is on or off; yes and no as in ssh_config, and true and false, mean the same.
type Switch bool

// Set parses text.
func (s *Switch) Set(text string) error {
	switch strings.ToLower(text) {
	case "on", "yes", "true":
		*s = true
	case "off", "no", "false":
		*s = false
	default:
		return errors.New("want on or off")
	}
	return nil
}

// String returns a text that Set reads.
func (s *Switch) String() string {
	if *s {
		return "on"
	}
	return "off"
}

// Type names the value in the help.
func (*Switch) Type() string { return "on|off" }

// Percent is a share of a whole, written with the sign or without: 4, 4%.
type Percent float64

// Set parses text.
func (p *Percent) Set(text string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		return errors.New("want a number such as 4 or 4%")
	}
	*p = Percent(n)
	return nil
}

// String returns a text that Set reads.
func (p *Percent) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) }

// Type names the value in the help.
func (*Percent) Type() string { return "percent" }

// Duration is a time as people write it: 90s, 2m, 7d or, as in ssh_config, a plain number of
// seconds. It is never negative.
type Duration time.Duration

// maxSeconds is the most that a time.Duration holds.
const maxSeconds = math.MaxInt64 / float64(time.Second) / 2

const day = 24 * time.Hour

// Set parses text.
func (s *Duration) Set(text string) error {
	d, err := time.ParseDuration(text)
	number, each := text, time.Second
	if days, is := strings.CutSuffix(text, "d"); is {
		number, each = days, day
	}
	if n, bad := strconv.ParseFloat(number, 64); bad == nil && n >= 0 && n*each.Seconds() <= maxSeconds {
		d, err = time.Duration(n*float64(each)), nil
	}
	if err != nil || d < 0 {
		return errors.New("want a time such as 10, 10s or 2m")
	}
	*s = Duration(d)
	return nil
}

// String returns a text that Set reads; "" is none.
func (s *Duration) String() string {
	if *s == 0 {
		return ""
	}
	if d := time.Duration(*s); d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return time.Duration(*s).String()
}

// Type names the value in the help.
func (*Duration) Type() string { return "time" }
