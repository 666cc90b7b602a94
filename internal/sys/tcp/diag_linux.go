package tcp

import (
	"encoding/binary"
	"net"

	"golang.org/x/sys/unix"
)

// Layout of a request for one socket and its answer (sock_diag(7), linux/inet_diag.h): struct
// inet_diag_req_v2 and inet_diag_msg, each after a struct nlmsghdr. Both hold a struct
// inet_diag_sockid.
const (
	header       = unix.NLMSG_HDRLEN
	requestSize  = header + 8 + sockidSize
	requestID    = header + 8 // of the sockid
	answerState  = header + 1
	answerID     = header + 4
	answerUID    = answerID + sockidSize + 12
	answerInode  = answerUID + 4
	answerSize   = answerInode + 4
	sockidSize   = 48
	sockidSource = 4 // the addresses have room for IPv6
	sockidTarget = 20
	sockidCookie = 40

	sockDiagByFamily = 20 // linux/sock_diag.h
	listening        = 10 // TCP_LISTEN, net/tcp_states.h
)

// diagnosed asks the kernel for one socket by its addresses. The answer is about that socket or
// there is none: unlike /proc/net/tcp, nothing can be missed because other sockets come and go
// meanwhile.
func diagnosed(local, remote *net.TCPAddr) (uid int, found bool) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	request := diagRequest(local, remote)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, false
	}
	answer := make([]byte, 1<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, false
	}
	return diagOwner(answer[:n], request, remote.Port == 0)
}

func diagRequest(local, remote *net.TCPAddr) []byte {
	native := binary.NativeEndian
	b := make([]byte, requestSize)
	native.PutUint32(b, requestSize)
	native.PutUint16(b[4:], sockDiagByFamily)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST)
	b[header], b[header+1] = unix.AF_INET, unix.IPPROTO_TCP
	native.PutUint32(b[header+4:], ^uint32(0)) // any state
	id := b[requestID:]
	binary.BigEndian.PutUint16(id, uint16(local.Port))
	binary.BigEndian.PutUint16(id[2:], uint16(remote.Port))
	copy(id[sockidSource:], local.IP.To4())
	copy(id[sockidTarget:], remote.IP.To4())
	native.PutUint64(id[sockidCookie:], ^uint64(0)) // INET_DIAG_NOCOOKIE
	return b
}

// diagOwner parses the answer. A socket that no process holds any more has no inode, and would seem
// to belong to root.
func diagOwner(answer, request []byte, listener bool) (uid int, found bool) {
	native := binary.NativeEndian
	if len(answer) < answerSize || native.Uint16(answer[4:]) != sockDiagByFamily {
		return 0, false
	}
	const addresses = sockidSource + 2*16
	got, asked := answer[answerID:][:addresses], request[requestID:][:addresses]
	same := string(got) == string(asked) || listener && string(got[:2]) == string(asked[:2])
	if !same || listener != (answer[answerState] == listening) || native.Uint32(answer[answerInode:]) == 0 {
		return 0, false
	}
	return int(native.Uint32(answer[answerUID:])), true
}
