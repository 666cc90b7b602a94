package fleet

import "strings"

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

// Set reads a list.
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
