package host

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/wildcard"
)

// numbered matches a name, or an address, that ends in two numbers.
var numbered = wildcard.Regexp(`^(.*[^0-9.-][.-]?|(?:[0-9]+\.){3})([0-9]+)(?:-|\.\.)([0-9]+)$`)

// Unknown suggests a remedy for a name without an address: web1-20 may have been meant as a set,
// and the name of a file as the hosts that it lists.
func Unknown(name string) string {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return "to read hosts from the file of this name: --hosts-file " + shell.Word(name) + "; otherwise check the spelling"
	}
	if strings.HasPrefix(name, "~/") {
		return "to read hosts from a file: --hosts-file " + name + ", without quotes; otherwise check the spelling"
	}
	if name == "all" {
		return "all hosts are @ssh_config:all, or @all with --inventory; otherwise check the spelling"
	}
	if net, err := netip.ParsePrefix(name); err == nil {
		return "for addresses of a network write " + addresses(net) + ", in quotes; otherwise check the spelling"
	}
	m := numbered().FindStringSubmatch(name)
	if m == nil {
		return "check the spelling"
	}
	from, _ := strconv.Atoi(m[2])
	if to, err := strconv.Atoi(m[3]); err != nil || to <= from {
		return "check the spelling"
	}
	return "for a set of hosts write " + m[1] + "[" + m[2] + "-" + m[3] + "], in quotes; otherwise check the spelling"
}

// addresses writes a network as a set, or describes the form of a set where the network does not
// fit into one range.
func addresses(net netip.Prefix) string {
	if !net.Addr().Is4() || net.Bits() < 24 {
		return "ranges such as 192.0.2.[1-254]"
	}
	a := net.Masked().Addr().As4()
	return fmt.Sprintf("%d.%d.%d.[%d-%d]", a[0], a[1], a[2], a[3], int(a[3])+1<<(32-net.Bits())-1)
}
