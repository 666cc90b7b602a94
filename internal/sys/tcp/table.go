package tcp

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// looks is how often the table of sockets is read before a socket counts as gone: while others come
// and go, one reading may miss some.
const looks = 5

// listed looks a socket up in the kernel's table, for kernels without sock_diag.
func listed(local, remote *net.TCPAddr) (uid int, found bool) {
	for range looks {
		text, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			return 0, false
		}
		if uid, found := owner(string(text), local, remote); found {
			return uid, true
		}
	}
	return 0, false
}

// owner finds the user of a socket in the text of /proc/net/tcp (proc_net(5)): number, local
// address, remote address, state, queues, timer, retransmits, uid, timeout, inode. A socket without
// an inode is held by no process.
func owner(table string, local, remote *net.TCPAddr) (uid int, found bool) {
	addresses := " " + hexAddress(local) + " " + hexAddress(remote) + " "
	i := strings.Index(table, addresses)
	if i < 0 {
		return 0, false
	}
	row, _, _ := strings.Cut(table[i:], "\n")
	fields := strings.Fields(row)
	if len(fields) < 9 || fields[8] == "0" {
		return 0, false
	}
	uid, err := strconv.Atoi(fields[6])
	return uid, err == nil
}

// hexAddress formats an IPv4 address and port as the kernel does: the address as the number that it
// is in memory.
func hexAddress(a *net.TCPAddr) string {
	ip := a.IP.To4()
	if ip == nil {
		return "none"
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip), a.Port)
}
