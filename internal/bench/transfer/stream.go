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
	ground *Ground
	up     bool
	client *job
	other  *job        // our source or sink at this end
	pipe   *os.File    // between the two: our copy
	clock  *proc.Clock // of the client
	serves string      // file with the number of the server's process; "" on a host
	cancel func()
	data   string // zero or random: compressed data must be the measured data
	flows  []*flow.Process
}

// begin starts an endless transfer.
func (b *Ground) begin(o Options, ends Ends) (_ *stream, err error) {
	s := &stream{ground: b, up: o.Direction == record.Upload, data: "zero"}
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
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	near, far := ends.Source, ends.Sink
	if !s.up {
		near, far = far, near
	}
	if far, err = s.program("far", !s.up, far); err != nil {
		return s, err
	}
	if near, err = s.program("near", s.up, near); err != nil {
		return s, err
	}
	line := "exec " + shell.Line(far...)
	if b.Server != nil {
		line = "echo $PPID >" + s.serves + "; " + line
	}
	client, own := b.command(b.destination(o), o.Suite, line), Process{Argv: near}
	read, write, err := os.Pipe()
	if err != nil {
		return s, err
	}
	flow.Resize(flow.Descriptor(read), 1<<20)
	defer write.Close()
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
	return s, err
}

// program returns the command that sends bytes for ever, or reads them, at one end: the given one,
// or the default; on a host and in front of one no program of ours is needed for that.
func (s *stream) program(end string, sends bool, given []string) ([]string, error) {
	device := map[string]string{"zero": "/dev/zero", "random": "/dev/urandom"}[s.data]
	what := map[bool][]string{true: {"source", s.data, "0"}, false: {"sink"}}[sends]
	switch {
	case given != nil:
		return given, nil
	case s.ground.Helper == nil && sends:
		return []string{"cat", device}, nil
	case s.ground.Helper == nil:
		return []string{"sh", "-c", "exec cat >/dev/null"}, nil
	}
	f, err := flow.New(s.ground.Helper("flow"), s.serves+"."+end, what...)
	if err != nil {
		return nil, err
	}
	s.flows = append(s.flows, f)
	return f.Argv, nil
}

// moved returns how much the client has sent, or received.
func (s *stream) moved() int64 {
	read, written, _ := s.clock.Traffic()
	if s.up {
		return written
	}
	return read
}

// logins is more than a client writes until its command runs.
const logins = 64 << 10

// ready reports whether the login is over: bytes go to the server, or come out of the client.
func (s *stream) ready() bool {
	_, written, _ := s.clock.Traffic()
	return written > logins && (s.ground.Server == nil || s.server() > 0)
}

func (s *stream) over() bool { return s.client.HasEnded() }

// why returns the client's message when it ended too early.
func (s *stream) why(ctx context.Context) error {
	if err := s.client.wait(ctx); err != nil {
		return err
	}
	return &Failure{"ssh", "it ended too early"}
}

// server returns the process of the connection; 0 on a host.
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
	for _, f := range s.flows {
		f.Close()
	}
	_ = os.Remove(s.serves)
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

// watch polls the pipe, and whether bytes arrive, until done returns true.
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
	m.tcp(e)
}

// tcp records the kernel's facts about the client's connection.
func (m *meter) tcp(e *record.Evidence) {
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
}
