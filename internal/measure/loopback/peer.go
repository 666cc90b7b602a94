package loopback

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// foreign reports whether another user of this machine made the connection.
// Nobody else can log in, but whoever connects costs a server process, and CPU
// time in the middle of a measurement. Where the kernel does not tell, or does not
// even know our own listening socket as ours, the answer is no.
func foreign(tcp *net.TCPConn) bool {
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false
	}
	here, ok := tcp.LocalAddr().(*net.TCPAddr)
	there, ok2 := tcp.RemoteAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return false
	}
	me, known := owner(string(text), here, &net.TCPAddr{IP: net.IPv4zero})
	uid, found := owner(string(text), there, here)
	return known && me == os.Getuid() && found && uid != me
}

// owner finds the user of a socket in the text of /proc/net/tcp (proc_net(5)):
// number, local address, remote address, state, queues, timer, retransmits, uid.
func owner(table string, local, remote *net.TCPAddr) (uid int, found bool) {
	addresses := " " + hexAddress(local) + " " + hexAddress(remote) + " "
	i := strings.Index(table, addresses)
	if i < 0 {
		return 0, false
	}
	fields := strings.Fields(table[i:])
	if len(fields) < 7 {
		return 0, false
	}
	uid, err := strconv.Atoi(fields[6])
	return uid, err == nil
}

// hexAddress is how the kernel prints an IPv4 address and port: the address as
// the number that it is in memory.
func hexAddress(a *net.TCPAddr) string {
	ip := a.IP.To4()
	if ip == nil {
		return "none"
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip), a.Port)
}
