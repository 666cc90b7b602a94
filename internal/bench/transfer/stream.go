//go:build linux

package transfer

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/shell"
	"sshpace/internal/bench/flow"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// stream is an endless transfer that is being watched.
type stream struct {
	bed    *Bed
	up     bool
	client *job
	other  *job        // our source or sink at this end
	pipe   *os.File    // between the two: our copy
	clock  *proc.Clock // of the client
	serves string      // file in which the server's process stands; "" on a host
	cancel func()
	data   string // zero or random: what is compressed must be what is measured
}

// begin starts an endless transfer.
func (b *Bed) begin(o Options, ends Ends) (*stream, error) {
	s := &stream{bed: b, up: o.Direction == record.Upload, data: "zero"}
	if o.Compression && b.Here.Random {
		s.data = "random"
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	b.serial++
	s.serves = b.here(fmt.Sprintf("serves.%d", b.serial))
	if b.Server != nil {
		b.Server.Fresh(false)
	}
	client := b.command(b.destination(o), o.Suite, s.remote(ends))
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	flow.Resize(flow.Descriptor(read), 1<<20)
	defer write.Close()
	own := s.own(ends)
	s.pipe = read
	if s.up {
		client.Stdin, own.Stdout = read, write
	} else {
		client.Stdout, own.Stdin = write, read
	}
	if s.other, err = b.start(ctx, own); err == nil {
		s.client, err = b.start(ctx, client)
	}
	if err == nil {
		s.clock, err = proc.OpenClock(s.client.Process.Pid)
	}
	if err != nil {
		s.close()
	}
	return s, err
}

// remote is the command at the server.
func (s *stream) remote(ends Ends) string {
	command := ends.Sink
	if !s.up {
		command = ends.Source
	}
	if s.bed.Server == nil {
		if s.up {
			return "exec cat >/dev/null"
		}
		return "exec cat " + s.device()
	}
	if command == nil && s.up {
		command = append(s.bed.Helper("flow"), "sink", s.counter("far"))
	} else if command == nil {
		command = append(s.bed.Helper("flow"), "source", s.counter("far"), s.data, "0")
	}
	return "echo $PPID >" + s.serves + "; exec " + shell.Line(command...)
}

// own is the program at this end.
func (s *stream) own(ends Ends) Process {
	command := ends.Source
	if !s.up {
		command = ends.Sink
	}
	if command == nil && s.bed.Helper == nil { // on a host: nothing of ours is needed here either
		command = map[bool][]string{true: {"cat", s.device()}, false: {"sh", "-c", "exec cat >/dev/null"}}[s.up]
	} else if command == nil && s.up {
		command = append(s.bed.Helper("flow"), "source", s.counter("near"), s.data, "0")
	} else if command == nil {
		command = append(s.bed.Helper("flow"), "sink", s.counter("near"))
	}
	return Process{Argv: command}
}

// device is a file of such data that has no end.
func (s *stream) device() string {
	return map[string]string{"zero": "/dev/zero", "random": "/dev/urandom"}[s.data]
}

// counter makes the file that a flow process wants; it goes with the stream.
func (s *stream) counter(end string) string {
	path := s.serves + "." + end
	if c, err := flow.CreateCounter(path); err == nil {
		c.Close()
	}
	return path
}

// moved is how much the client has sent, or received.
func (s *stream) moved() int64 {
	read, written, _ := s.clock.Traffic()
	if s.up {
		return written
	}
	return read
}

// ready reports whether the login is over.
func (s *stream) ready() bool {
	return s.moved() > 0 && (s.bed.Server == nil || s.server() > 0)
}

// over reports whether the client has ended.
func (s *stream) over() bool { return s.client.HasEnded() }

// why is what the client said when it ended too early.
func (s *stream) why(ctx context.Context) error {
	if err := s.client.wait(ctx); err != nil {
		return err
	}
	return &Failure{"ssh", "it ended too early"}
}

// server is the process that carries the connection; 0 on a host.
func (s *stream) server() int {
	text, err := os.ReadFile(s.serves)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func (s *stream) close() {
	s.cancel()
	for _, j := range []*job{s.client, s.other} {
		if j != nil {
			j.Kill()
		}
	}
	if s.clock != nil {
		s.clock.Close()
	}
	s.pipe.Close()
	for _, path := range []string{s.serves, s.serves + ".near", s.serves + ".far"} {
		_ = os.Remove(path)
	}
}

// meter watches a stream.
type meter struct {
	stream *stream
	clocks []*proc.Clock // client, server if it is here
	own    *proc.Clock
	socket *proc.Socket // nil where it cannot be looked at
	room   int          // in the pipe

	patience time.Duration // without a byte for longer than that is a stall

	used, waits   []time.Duration // at the beginning
	harness       time.Duration
	load          proc.Load
	info          *unix.TCPInfo
	looks         int
	starved, full int
	stalled       time.Duration
}

func (s *stream) meter() (*meter, error) {
	m := &meter{stream: s, clocks: []*proc.Clock{s.clock}}
	if pid := s.server(); pid > 0 {
		if clock, err := proc.OpenClock(pid); err == nil {
			m.clocks = append(m.clocks, clock)
		}
	}
	var err error
	if m.own, err = proc.OpenClock(s.other.Process.Pid); err != nil {
		return nil, &Failure{"sshpace", "the local process that moves the bytes has ended"}
	}
	m.socket, _ = proc.OpenSocket(s.client.Process.Pid)
	m.room, _ = unix.FcntlInt(uintptr(flow.Descriptor(s.pipe)), unix.F_GETPIPE_SZ, 0)
	return m, nil
}

func (m *meter) close() {
	for _, clock := range m.clocks[1:] {
		clock.Close()
	}
	m.own.Close()
	if m.socket != nil {
		m.socket.Close()
	}
}

// watch looks at the pipe, and at whether bytes arrive, until done says so.
func (m *meter) watch(ctx context.Context, done func() bool) {
	for _, clock := range m.clocks {
		used, _ := clock.CPU()
		waits, _ := clock.Wait()
		m.used, m.waits = append(m.used, used), append(m.waits, waits)
	}
	m.harness, _ = m.own.CPU()
	m.load, _ = proc.ReadLoad()
	if m.socket != nil {
		m.info, _ = m.socket.Info()
	}
	last, since := m.stream.moved(), time.Now()
	for !done() && ctx.Err() == nil {
		time.Sleep(look)
		held, _ := unix.IoctlGetInt(flow.Descriptor(m.stream.pipe), unix.TIOCINQ)
		m.looks++
		if held == 0 {
			m.starved++
		}
		if held > m.room/2 {
			m.full++
		}
		if now := m.stream.moved(); now > last {
			if gap := time.Since(since); gap > m.patience {
				m.stalled += gap
			}
			last, since = now, time.Now()
		}
	}
}

// fill writes down what was seen.
func (m *meter) fill(e *record.Evidence, wall time.Duration) {
	share := func(d time.Duration) *float64 {
		s := max(0, d.Seconds()/wall.Seconds())
		return &s
	}
	for i, clock := range m.clocks {
		used, err := clock.CPU()
		if err != nil {
			continue
		}
		uses, waits := share(used-m.used[i]), (*float64)(nil)
		if delay, ok := clock.Wait(); ok {
			waits = share(delay - m.waits[i])
		}
		if i == 0 {
			e.ClientShare, e.ClientWaits = uses, waits
		} else {
			e.ServerShare, e.ServerWaits = uses, waits
		}
	}
	if used, err := m.own.CPU(); err == nil {
		e.HarnessShare = *share(used - m.harness)
	}
	if load, ok := proc.ReadLoad(); ok {
		e.OwnCores, e.BusyCores = runtime.NumCPU(), (load.Busy-m.load.Busy).Seconds()/wall.Seconds()
	}
	e.Stalled = share(m.stalled)
	part := func(n int) *float64 { p := float64(n) / float64(max(1, m.looks)); return &p }
	if m.stream.up {
		e.SourceEmpty = part(m.starved)
	} else {
		e.SinkFull = part(m.full)
	}
	m.tcp(e, wall)
}

// tcp is what the kernel knows of the client's connection.
func (m *meter) tcp(e *record.Evidence, wall time.Duration) {
	if m.socket == nil || m.info == nil {
		return
	}
	now, err := m.socket.Info()
	if err != nil {
		return
	}
	e.TCPRTTNS = time.Duration(now.Min_rtt) * time.Microsecond
	if sent := now.Segs_out - m.info.Segs_out; sent > 0 && m.stream.up {
		e.Retransmitted = float64(now.Total_retrans-m.info.Total_retrans) / float64(sent)
	}
	if m.stream.up {
		busy := min(1, float64(now.Busy_time-m.info.Busy_time)/1e6/wall.Seconds())
		e.SocketBusy = &busy
	}
}
