package openssh

import "strings"

// switches are the options of ssh(1) that take no value.
const switches = "1246AaCfGgKkMNnqsTtVvXxYy"

// SplitOptions takes the switches before an option off it: -Cp22 is -C and -p22.
func SplitOptions(arg string) []string {
	var options []string
	for len(arg) > 2 && arg[0] == '-' && strings.IndexByte(switches, arg[1]) >= 0 {
		options = append(options, arg[:2])
		arg = "-" + arg[2:]
	}
	if len(arg) > 2 { // ssh_config(5) allows the blank in "-o Name=value", ssh's getopt in all
		arg = arg[:2] + strings.TrimLeft(arg[2:], " \t")
	}
	return append(options, arg)
}
