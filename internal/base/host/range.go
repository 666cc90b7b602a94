package host

import (
	"os"
	"strconv"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/wildcard"
)

// numbered is a name that ends in two numbers.
var numbered = wildcard.Regexp(`^(.*[^0-9.-][.-]?)([0-9]+)(?:-|\.\.)([0-9]+)$`)

// Unknown says what to do about a name that has no address: web1-20 may have been meant as a set, and
// the name of a file as the hosts that it lists.
func Unknown(name string) string {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return "to read hosts from the file of this name: --hosts-file " + shell.Word(name) + "; else check the spelling"
	}
	m := numbered().FindStringSubmatch(name)
	if m == nil {
		return "check the spelling"
	}
	from, _ := strconv.Atoi(m[2])
	if to, err := strconv.Atoi(m[3]); err != nil || to <= from {
		return "check the spelling"
	}
	return "for a set of hosts write " + m[1] + "[" + m[2] + "-" + m[3] + "], in quotes; else check the spelling"
}
