//go:build linux

package main

import (
	"context"
	"net"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/relay"
)

// bare is a thread that does what the relay of a scene does, and nothing else: it waits for a byte
// where nothing is delayed, otherwise until the time of delivery; busily at the end where a byte is
// due, and no other follows.
func (c scene) bare() func(ctx context.Context) lateness {
	const together = 500 * time.Microsecond // as often as packets of a stream leave
	const awake, portion = time.Millisecond, 8
	switch {
	case c.path == relay.Path{}:
		return woken
	case c.path.Rate > 0 || c.stream:
		return func(ctx context.Context) lateness { return slept(ctx, together, 0) }
	}
	return func(ctx context.Context) lateness {
		return slept(ctx, c.path.Delay, min(awake, c.path.Delay/portion))
	}
}

// prompt gives the caller a thread as the relay has it.
func prompt() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_RR, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}, 0) != nil {
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_NORMAL, Runtime: 100_000}, 0)
	}
}

// onThread runs something on a thread that ends with it.
func onThread(do func() lateness) lateness {
	done := make(chan lateness)
	go func() { prompt(); done <- do() }()
	return <-done
}

// slept sleeps until one moment after the other, and says how late it was: what stops the machine
// for a while makes several of them late, as it does with packets.
func slept(ctx context.Context, each, awake time.Duration) lateness {
	return onThread(func() (late lateness) {
		for when := time.Now().Add(each); ctx.Err() == nil; when = when.Add(each) {
			if rest := time.Until(when) - awake; rest > 0 {
				ts := unix.NsecToTimespec(int64(rest))
				_, _ = unix.Ppoll(nil, &ts, nil)
			}
			for time.Until(when) > 0 {
			}
			late = append(late, time.Since(when))
		}
		return late
	})
}

// woken waits for bytes over loopback, and says how much later it had them than the kernel.
func woken(ctx context.Context) lateness {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil
	}
	defer listener.Close()
	go func() {
		conn, err := net.Dial("tcp4", listener.Addr().String())
		if err != nil {
			return
		}
		defer conn.Close()
		one := make([]byte, 1)
		for ctx.Err() == nil {
			_, _ = conn.Write(one)
			_, _ = conn.Read(one)
		}
	}()
	conn, err := listener.Accept()
	if err != nil {
		return nil
	}
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File() // for itself: without Go's poller
	if err != nil {
		return nil
	}
	conn.Close()
	defer file.Close()
	fd := int(file.Fd())
	_ = stampArrivals(fd)
	return onThread(func() (late lateness) {
		one, control := make([]byte, 1), make([]byte, 256)
		for {
			n, filled, _, _, err := unix.Recvmsg(fd, one, control, 0)
			now := time.Now()
			if err != nil || n == 0 {
				return late
			}
			late = append(late, now.Sub(stampOf(control[:filled])))
			_, _ = unix.Write(fd, one)
		}
	})
}
