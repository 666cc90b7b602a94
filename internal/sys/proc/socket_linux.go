package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Socket is the TCP connection of another process of this user, held open.
type Socket struct{ fd int }

// OpenSocket copies the first TCP socket of a process (pidfd_getfd(2)); it needs the permission to
// trace it.
func OpenSocket(pid int) (*Socket, error) {
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(handle)
	directory := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		target, err := os.Readlink(directory + "/" + entry.Name())
		if err != nil || !strings.HasPrefix(target, "socket:") {
			continue
		}
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		fd, err := unix.PidfdGetfd(handle, number, 0)
		if err != nil {
			return nil, fmt.Errorf("look at socket %d of process %d: %w", number, pid, err)
		}
		if s := (&Socket{fd}); s.isTCP() {
			return s, nil
		}
		unix.Close(fd)
	}
	return nil, errors.New("the process has no TCP connection")
}

func (s *Socket) isTCP() bool {
	protocol, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return err == nil && protocol == unix.IPPROTO_TCP
}

// Info returns the kernel's facts about the connection (tcp(7) TCP_INFO).
func (s *Socket) Info() (*unix.TCPInfo, error) {
	return unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
}

// Close closes the copy. The process keeps its own.
func (s *Socket) Close() { unix.Close(s.fd) }
