//go:build linux

package drive

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Remote drives connections to a host of the user's, through the user's own ssh
// and configuration. Nothing is installed there: the remote end is a line of
// POSIX shell. It keeps a pause between connections and gives up when the host
// goes on refusing them (sshd_config(5) MaxStartups, PerSourcePenalties).
type Remote struct {
	Rig
	SSH         openssh.Program
	Destination openssh.Destination

	sitting
	last    time.Time // end of the last connection
	refused int       // refusals in a row
}

// Pacing of connections.
const (
	pause       = 100 * time.Millisecond
	refusalWait = time.Second // doubles with each refusal in a row
	longestWait = 4 * time.Second
	maxRefusals = 8 // in a row; of a host that drops 3 of 10, as MaxStartups may, one trial in 15,000 meets so many
)

// HostError says that a host cannot be measured at all.
type HostError struct {
	Outcome record.Outcome
	Detail  string
	KeyFile string // holds another key of the host; "" if none does
	dropped bool   // after the connection had been accepted: worth another try
}

// dropped tells a server that hangs up from a port on which nothing listens.
func dropped(detail string) bool {
	return strings.Contains(detail, "identification") || strings.Contains(detail, "closed") || strings.Contains(detail, "reset")
}

func (e *HostError) Error() string { return e.Detail }

// Look is what the first login shows.
type Look struct {
	Offer   alg.Offer
	Version string // software version of the server
	Machine string // system and CPU, "" if the host does not say
	Proc    bool   // the server's costs can be read
	Strict  bool   // both sides do strict key exchange (CVE-2023-48795)
}

// Look logs in once and finds out what the host offers. A failed login is a
// *HostError; a refusal is tried again a few times, because a host that limits
// connections drops some at random.
func (r *Remote) Look(ctx context.Context) (Look, error) {
	for {
		if err := r.pace(ctx); err != nil {
			return Look{}, err
		}
		look, err := r.look(ctx)
		var hostErr *HostError
		r.last = time.Now()
		if !errors.As(err, &hostErr) || hostErr.Outcome != record.Refused || !hostErr.dropped {
			return look, err
		}
		if r.refused++; r.refused >= maxRefusals {
			return look, err
		}
	}
}

func (r *Remote) look(ctx context.Context) (Look, error) {
	mark := newMark()
	script := "uname -srm; grep -m1 -e \"^model name\" -e \"^Model\" /proc/cpuinfo; echo " + mark + "-end"
	command := shell(announce(mark) + "; " + script)
	d := r.Destination
	d.Options = append([]string{"-v"}, d.Options...)
	var look Look
	s, n, err := r.session(ctx, d, record.Trial{}, command, func(ctx context.Context, c *client, out *os.File) error {
		rest, err := awaitMark(out, mark+"-ready")
		if err != nil {
			return err
		}
		_, procErr := proc.ParseSchedstat(rest)
		look.Proc = procErr == nil
		for {
			line, err := awaitMark(out, "")
			if err != nil || strings.HasPrefix(line, mark+"-end") {
				return err
			}
			look.Machine = describe(look.Machine, line)
		}
	})
	if err != nil {
		return look, err
	}
	if s.Outcome != record.OK {
		return look, &HostError{s.Outcome, s.Detail, n.KeyFile, dropped(s.Detail)}
	}
	look.Offer, look.Version, look.Strict = n.Server, n.Banner, n.Strict
	return look, nil
}

// maxMachine is how much a host may tell about itself, in bytes.
const maxMachine = 300

// describe adds a line of uname or /proc/cpuinfo to what is known of a host.
func describe(machine, line string) string {
	if _, model, found := strings.Cut(line, ":"); found {
		line = model
	}
	if machine != "" {
		machine += "; "
	}
	machine += strings.TrimSpace(line)
	return strings.ToValidUTF8(machine[:min(len(machine), maxMachine)], "")
}

// Run carries out one trial. It is a lab.Driver.
func (r *Remote) Run(ctx context.Context, t record.Trial) (record.Sample, error) {
	if err := r.pace(ctx); err != nil {
		return record.Sample{Outcome: record.Aborted, Start: time.Now()}, nil
	}
	s, err := r.trial(ctx, t)
	if err := cmp.Or(err, r.reckon(s)); err != nil {
		return s, err
	}
	return s, nil
}

func (r *Remote) trial(ctx context.Context, t record.Trial) (record.Sample, error) {
	switch {
	case t.Workload == record.Login:
		return r.login(ctx, t)
	case t.Workload == record.Transfer && t.Direction == record.Download && r.Data != "zero":
		// /dev/urandom is slower than many a cipher: it would be what is measured.
		return record.Sample{}, fmt.Errorf("%s data is not to be had from a host", r.Data)
	case t.Workload == record.Transfer && t.Direction == record.Download:
		return r.download(ctx, t)
	case t.Workload == record.Transfer:
		return r.upload(ctx, t)
	}
	return record.Sample{}, fmt.Errorf("workload %q is not for remote hosts", t.Workload)
}

// pace waits as long as the host is to be left alone.
func (r *Remote) pace(ctx context.Context) error {
	wait := pause
	if r.refused > 0 {
		wait = min(longestWait, refusalWait<<(r.refused-1))
	}
	select {
	case <-time.After(time.Until(r.last.Add(wait))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newMark is a word that no start-up file prints.
func newMark() string { return "sshpace-" + rand.Text() }

// shell wraps a script, which holds no single quote, for any login shell: exec
// makes the script's parent the server's process of this connection.
func shell(script string) string { return "exec sh -c '" + script + "'" }

// announce prints the mark and, where there is a /proc, what the server's
// process has cost so far. The empty line ends what start-up files left open.
func announce(mark string) string {
	return "echo; echo " + mark + "-ready $(cat /proc/$PPID/schedstat 2>/dev/null)"
}

func farewell(mark string) string {
	return "echo; echo " + mark + "-end $(cat /proc/$PPID/schedstat 2>/dev/null)"
}

// session runs command and body on its output, and makes a sample of it.
func (r *Remote) session(ctx context.Context, d openssh.Destination, t record.Trial, command string,
	body func(ctx context.Context, c *client, out *os.File) error, stdin ...*os.File) (s record.Sample, n openssh.Negotiation, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return s, n, err
	}
	defer read.Close()
	log := r.file("log")
	var in *os.File
	if len(stdin) > 0 {
		in = stdin[0]
	}
	c, err := r.startClient(r.SSH.Command(d, t.Asked(), log, r.Connect, command), t.Asked(), log, in, write)
	write.Close()
	if in != nil {
		in.Close()
	}
	if err != nil {
		return s, n, err
	}
	s.Start = c.started
	_ = read.SetReadDeadline(time.Now().Add(r.Connect))
	stop := context.AfterFunc(ctx, c.killAsync)
	bodyErr := body(ctx, c, read)
	stop()
	c.linger(bodyErr)
	c.kill()
	if ctx.Err() != nil {
		bodyErr = context.Canceled
	}
	n = c.finish(&s, bodyErr)
	return s, n, nil
}

// login times one login; what it costs the server is not to be seen.
func (r *Remote) login(ctx context.Context, t record.Trial) (record.Sample, error) {
	mark := newMark()
	var ready, cpu time.Duration
	s, _, err := r.session(ctx, r.Destination, t, "echo "+mark, func(ctx context.Context, c *client, out *os.File) error {
		if _, err := awaitMark(out, mark); err != nil {
			return err
		}
		ready = time.Since(c.started)
		err := c.awaitEnd(r.Connect)
		if err == nil {
			cpu = c.cpu()
		}
		return err
	})
	if s.Outcome == record.OK {
		s.Phases = &record.Phases{LoginNS: ready, ClientCPUNS: &cpu}
	}
	return s, err
}

// upload sends until the segments are timed and then ends the stream, so that
// the host can say how many bytes arrived and what they cost it.
func (r *Remote) upload(ctx context.Context, t record.Trial) (record.Sample, error) {
	spin := proc.Spin()
	read, write, err := os.Pipe()
	if err != nil {
		return record.Sample{}, err
	}
	source, err := r.startFlow(nil, write, "source", r.Data, "0")
	write.Close()
	if err != nil {
		read.Close()
		return record.Sample{}, err
	}
	defer source.close()
	mark := newMark()
	var segments []record.Segment
	var count unit.Bytes
	var before, after string
	s, _, err := r.session(ctx, r.Destination, t, shell(announce(mark)+"; wc -c; "+farewell(mark)), func(ctx context.Context, c *client, out *os.File) error {
		var err error
		if before, err = awaitMark(out, mark+"-ready"); err != nil {
			return err
		}
		if segments, err = r.metered(ctx, t, c, source, spin); err != nil {
			return err
		}
		source.counter.Stop()
		_ = out.SetReadDeadline(time.Now().Add(r.Connect))
		if count, err = readCount(out); err != nil {
			return err
		}
		after, err = awaitMark(out, mark+"-end")
		return err
	}, read)
	s.Bytes = count
	if sent := unit.Bytes(source.counter.Bytes()); s.Outcome == record.OK && count != sent {
		s.Outcome, s.Detail = record.Broken, fmt.Sprintf("%d of %d bytes arrived", count, sent)
	}
	s.Segments = serverShare(segments, count, before, after)
	return s, err
}

// readCount reads what wc -c says.
func readCount(out *os.File) (unit.Bytes, error) {
	line, err := awaitMark(out, "")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0, &failure{record.Broken, fmt.Sprintf("the host's byte count is %q", line)}
	}
	return unit.Bytes(n), nil
}

// download receives until the segments are timed; then one line on standard
// input ends the remote source, and what it cost the server comes as the tail.
func (r *Remote) download(ctx context.Context, t record.Trial) (record.Sample, error) {
	spin := proc.Spin()
	mark := newMark()
	script := announce(mark) + "; cat /dev/zero & p=$!; read x; kill $p; wait $p 2>/dev/null; " + farewell(mark)
	stopRead, stopWrite, err := os.Pipe()
	if err != nil {
		return record.Sample{}, err
	}
	defer stopWrite.Close()
	var segments []record.Segment
	var before, after string
	var bytes unit.Bytes
	s, _, err := r.session(ctx, r.Destination, t, shell(script), func(ctx context.Context, c *client, out *os.File) error {
		var err error
		if before, err = awaitMark(out, mark+"-ready"); err != nil {
			return err
		}
		sink, err := r.startFlow(out, nil, "sink")
		if err != nil {
			return err
		}
		defer sink.close()
		if segments, err = r.metered(ctx, t, c, sink, spin); err != nil {
			return err
		}
		sink.counter.Stop()
		if _, err := stopWrite.WriteString("\n"); err != nil {
			return errEnded
		}
		if err := c.awaitEnd(r.Connect); err != nil {
			return err
		}
		after, err = sink.tail(mark+"-end", r.Connect)
		bytes = unit.Bytes(sink.counter.Bytes())
		return err
	}, stopRead)
	s.Bytes = bytes
	s.Segments = serverShare(segments, bytes, before, after)
	return s, err
}

// tail waits for the sink to see the end, and finds the line after the mark.
func (h *helper) tail(mark string, limit time.Duration) (string, error) {
	if err := h.awaitEnd(limit); err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(string(h.counter.Tail()), mark)
	if !ok {
		return "", &failure{record.Broken, "the stream ended without its last line"}
	}
	return strings.TrimSpace(rest), nil
}

// metered times the segments of a connection of which only this end is seen.
func (r *Remote) metered(ctx context.Context, t record.Trial, c *client, flow *helper, spin time.Duration) ([]record.Segment, error) {
	m := &meters{bytes: flow.counter.Bytes, way: t.Direction}
	defer m.close()
	var err error
	if m.client, err = proc.OpenClock(c.cmd.Process.Pid); err != nil {
		return nil, errEnded
	}
	if clock, err := proc.OpenClock(flow.cmd.Process.Pid); err == nil {
		m.harness = append(m.harness, clock)
	}
	return r.timed(ctx, t, c, m, spin, warmUpRemote)
}

// serverShare spreads what the whole stream cost the server over the segments,
// by bytes: the host's clock is read only before and after.
func serverShare(segments []record.Segment, total unit.Bytes, before, after string) []record.Segment {
	from, err := proc.ParseSchedstat(before)
	to, err2 := proc.ParseSchedstat(after)
	if err != nil || err2 != nil || total <= 0 || to[0] <= from[0] {
		return segments
	}
	perByte := float64(to[0]-from[0]) / float64(total)
	for i := range segments {
		cost := time.Duration(perByte * float64(segments[i].Bytes))
		segments[i].ServerCPUNS = &cost
	}
	return segments
}
