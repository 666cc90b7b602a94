package openssh

import "strings"

// The options that take a value.
const (
	WithValue    = "BbcDEeFIiJLlmOoPpQRSWw" // of ssh(1)
	ScpWithValue = "cDFiJloPSX"             // of scp(1)
)

// SplitOptions separates the switches before an option: -Cp22 is -C and -p22.
func SplitOptions(arg, withValue string) []string {
	var options []string
	for len(arg) > 2 && arg[0] == '-' && strings.IndexByte("-"+withValue, arg[1]) < 0 {
		options = append(options, arg[:2])
		arg = "-" + arg[2:]
	}
	if len(arg) > 2 { // ssh_config(5) allows the blank in "-o Name=value", ssh's getopt in all
		arg = arg[:2] + strings.TrimLeft(arg[2:], " \t")
	}
	return append(options, arg)
}
