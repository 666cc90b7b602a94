//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sshpace/crosscheck/daemon"
	"sshpace/internal/sys/relay"
)

// load keeps a path busy for a turn and says how late the packets were.
type load func(relay.Path) (lateness, error)

// seen is what the relay has delivered to the server, in order.
type seen struct {
	mu      sync.Mutex
	packets []relay.Seen
}

func (s *seen) watch(p relay.Seen) {
	if p.Dir == relay.Up && len(p.Data) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.packets = append(s.packets, p)
	}
}

// arrivals are how many bytes were there when, by the kernel's stamps.
type arrivals struct {
	mu    sync.Mutex
	bytes []int
	at    []time.Time
}

// late is how late each packet arrived: no later than what was read with its last byte.
func (a *arrivals) late(s *seen) (late lateness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	end, i := 0, 0
	for _, p := range s.packets {
		for end += len(p.Data); i < len(a.bytes) && a.bytes[i] < end; i++ {
		}
		if i < len(a.at) && !p.Waited {
			late = append(late, a.at[i].Sub(p.Due))
		}
	}
	return late
}

// read takes all from a connection, on a thread that is prompt so that few packets come together;
// answer sends back each byte of a conversation.
func (a *arrivals) read(conn net.Conn, answer bool) error {
	file, err := conn.(*net.TCPConn).File()
	conn.Close()
	if err != nil {
		return err
	}
	defer file.Close()
	prompt()
	fd := int(file.Fd()) // which waits from now on
	if err := stampArrivals(fd); err != nil {
		return err
	}
	buffer, control, total := make([]byte, 256<<10), make([]byte, 256), 0
	for {
		n, filled, _, _, err := unix.Recvmsg(fd, buffer, control, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil
		}
		total += n
		a.mu.Lock()
		a.bytes, a.at = append(a.bytes, total), append(a.at, stampOf(control[:filled]))
		a.mu.Unlock()
		if answer {
			_, _ = unix.Write(fd, buffer[:n])
		}
	}
}

// stampArrivals has the kernel say when bytes have arrived.
func stampArrivals(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
}

// stampOf is the time in control messages.
func stampOf(control []byte) time.Time {
	messages, _ := unix.ParseSocketControlMessage(control)
	for _, m := range messages {
		if m.Header.Type == unix.SO_TIMESTAMPING && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			stamp := *(*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			now := time.Now()
			return now.Add(-time.Duration(now.UnixNano() - stamp.Nano())) // with a monotonic reading
		}
	}
	return time.Now()
}

// through relays one connection to this program for a turn.
func through(path relay.Path, answer bool, use func(conn net.Conn, until time.Time) error) (lateness, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	var passed seen
	r, err := relay.To(listener.Addr().String(), relay.Options{Path: path, Watch: passed.watch})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var came arrivals
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = came.read(conn, answer)
		}
		done <- err
	}()
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", r.Port()))
	if err != nil {
		return nil, err
	}
	err = use(conn, time.Now().Add(turn))
	conn.Close()
	r.Cut()
	if failed := <-done; err == nil {
		err = failed
	}
	return came.late(&passed), err
}

// talk sends a byte, waits for the answer, and so on.
func talk(path relay.Path) (lateness, error) {
	return through(path, true, func(conn net.Conn, until time.Time) error {
		one := make([]byte, 1)
		for time.Now().Before(until) {
			if _, err := conn.Write(one); err != nil {
				return err
			}
			if _, err := conn.Read(one); err != nil {
				return err
			}
		}
		return nil
	})
}

// pour sends all that fits.
func pour(path relay.Path) (lateness, error) {
	return through(path, false, func(conn net.Conn, until time.Time) error {
		_ = conn.SetWriteDeadline(until)
		for much := make([]byte, 256<<10); time.Now().Before(until); {
			_, _ = conn.Write(much)
		}
		return nil
	})
}

// transfer has ssh send zeros to an sshd.
func transfer(path relay.Path) (lateness, error) {
	dir, err := os.MkdirTemp("", "crosscheck-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	server, err := daemon.Start([]string{"/usr/sbin/sshd"}, dir, "127.0.0.1")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	var passed seen
	r, err := relay.To("127.0.0.1:"+server.Port, relay.Options{Path: path, Watch: passed.watch})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	const login = time.Second
	ctx, cancel := context.WithTimeout(context.Background(), login+turn)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ssh", "-F", "none", "-p", fmt.Sprint(r.Port()), "-i", server.Key, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR", "-o", "Ciphers=aes128-gcm@openssh.com", "127.0.0.1", "cat >/dev/null")
	zeros, err := os.Open("/dev/zero")
	if err != nil {
		return nil, err
	}
	defer zeros.Close()
	cmd.Stdin = zeros
	if out, err := cmd.CombinedOutput(); ctx.Err() == nil {
		return nil, fmt.Errorf("ssh: %w: %s", err, out)
	}
	r.Cut()
	passed.mu.Lock()
	defer passed.mu.Unlock()
	var late lateness
	for _, p := range passed.packets {
		if !p.Waited {
			late = append(late, p.Left.Sub(p.Due))
		}
	}
	return late, nil
}
