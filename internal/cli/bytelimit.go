package cli

import (
	"strconv"

	"sshpace/internal/base/unit"
)

// byteLimit is a flag's limit in bytes: 256M, 1G; 0 is none.
type byteLimit int64

func (b *byteLimit) Set(text string) error {
	if text == "0" {
		*b = 0
		return nil
	}
	n, err := unit.ParseBytes(text)
	if err == nil {
		*b = byteLimit(n)
	}
	return err
}

// String is a text that Set reads.
func (b *byteLimit) String() string {
	n, prefix := int64(*b), 0
	for n != 0 && n%1024 == 0 && prefix < len("KMGT") {
		n /= 1024
		prefix++
	}
	return strconv.FormatInt(n, 10) + "KMGT"[max(0, prefix-1):prefix]
}

// Type is what the help shows as the value.
func (*byteLimit) Type() string { return "size" }
