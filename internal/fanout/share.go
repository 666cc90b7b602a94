package fanout

import (
	"fmt"
	"strconv"
	"strings"
)

// Share is a number of hosts, or a part of all of them.
type Share struct {
	Count   int
	Percent float64 // counts where it is not 0
}

func (s Share) String() string {
	if s.Percent != 0 {
		return strconv.FormatFloat(s.Percent, 'g', -1, 64) + "%"
	}
	return strconv.Itoa(s.Count)
}

// of returns how many of total hosts it is, not rounded.
func (s Share) of(total int) float64 {
	if s.Percent != 0 {
		return s.Percent / 100 * float64(total)
	}
	return float64(s.Count)
}

// Shares is a list such as 1,10%.
type Shares []Share

// String writes a list as Set reads it.
func (s *Shares) String() string {
	var texts []string
	for _, one := range *s {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, ",")
}

// Set parses a list of numbers and percentages, such as "1,10%".
func (s *Shares) Set(text string) error {
	*s = nil
	for one := range strings.SplitSeq(text, ",") {
		share, err := ParseShare(one)
		if err != nil {
			return err
		}
		*s = append(*s, share)
	}
	return nil
}

// Type names the value in the help.
func (*Shares) Type() string { return "N|P%" }

// ParseShare reads "5" or "10%".
func ParseShare(text string) (Share, error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || !(p > 0 && p <= 100) {
			return Share{}, fmt.Errorf("%q is not a percentage of the hosts, such as 10%%", text)
		}
		return Share{Percent: p}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return Share{}, fmt.Errorf("%q is not a number of hosts", text)
	}
	return Share{Count: n}, nil
}
