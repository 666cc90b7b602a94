package cli

import (
	"errors"
	"strconv"
	"strings"
)

// percent is a flag's share of a whole, written with the sign or without: 4, 4%.
type percent float64

func (p *percent) Set(text string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		return errors.New("want a number such as 4 or 4%")
	}
	*p = percent(n)
	return nil
}

func (p *percent) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) }

// Type is what the help shows as the value.
func (*percent) Type() string { return "percent" }
