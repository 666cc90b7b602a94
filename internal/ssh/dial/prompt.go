package dial

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// prompt acknowledges small packets at once. sshd writes several of them in a
// row and leaves Nagle's algorithm on: each waits until the one before has been
// acknowledged (RFC 896), which the kernel delays by 40 ms (RFC 1122 section
// 4.2.3.2). The kernel forgets the option after a few packets (tcp(7),
// TCP_QUICKACK), hence again before every read that may have to wait.
//
// Where the option is not permitted or not known, logins are just slower.
type prompt struct {
	raw  syscall.RawConn // nil: no TCP, or not permitted
	bulk bool            // the last read was as large as in a transfer
}

// bulkRead is more than a packet of a login.
const bulkRead = 2048

func newPrompt(c net.Conn) prompt {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return prompt{}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return prompt{}
	}
	return prompt{raw: raw}
}

func (p *prompt) read(c net.Conn, b []byte) (int, error) {
	if p.raw != nil && !p.bulk {
		p.acknowledge()
	}
	n, err := c.Read(b)
	p.bulk = n >= bulkRead
	return n, err
}

func (p *prompt) acknowledge() {
	var refused error
	err := p.raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
	})
	if err != nil || refused != nil {
		p.raw = nil
	}
}
