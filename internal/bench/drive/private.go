//go:build linux

package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/flow"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// Private drives connections to the server of this run.
type Private struct {
	Rig
	Server *loopback.Server
	// Client is the command line that runs remote under the wanted suite and
	// writes debug lines to log.
	Client func(want alg.Suite, log, remote string) []string

	sitting
}

// serverGrace is how long a server process may take to notice that its client
// is gone.
const serverGrace = 3 * time.Second

// LoginError says that the private server refused our own key, or was not
// itself: nothing can be measured then.
type LoginError struct{ Detail string }

func (e *LoginError) Error() string {
	return "the private server cannot be logged in to: " + e.Detail
}

// Run carries out one trial. It is a lab.Driver.
func (p *Private) Run(ctx context.Context, t record.Trial) (record.Sample, error) {
	s, err := p.trial(ctx, t)
	if err == nil && (s.Outcome == record.Denied || s.Outcome == record.HostKey) {
		err = &LoginError{s.Detail}
	}
	return s, err
}

func (p *Private) trial(ctx context.Context, t record.Trial) (record.Sample, error) {
	switch t.Workload {
	case record.Login:
		return p.login(ctx, t)
	case record.Copy:
		return p.copy(ctx, t)
	}
	return record.Sample{}, fmt.Errorf("workload %q is not known to the private server", t.Workload)
}

// flows are the processes at both ends of the data of one connection.
type flows struct {
	remote        *flow.Counter // of the flow at the server
	remoteFile    string
	command       string // that the server runs
	local         *helper
	stdin, stdout *os.File
}

// open starts what is at the server. limit is the number of bytes to send, 0 for no end.
func (p *Private) open(t record.Trial, limit unit.Bytes) (*flows, error) {
	ends := &flows{remoteFile: p.file("remote")}
	var err error
	if ends.remote, err = flow.CreateCounter(ends.remoteFile); err != nil {
		return nil, err
	}
	if t.Direction == record.Download {
		err = p.openDownload(ends, limit)
	} else {
		err = p.openUpload(ends, limit)
	}
	if err != nil {
		ends.close()
		return nil, err
	}
	return ends, nil
}

// openUpload reads zeros straight from the kernel where the stream has no end:
// no process of ours stands before ssh then.
func (p *Private) openUpload(ends *flows, limit unit.Bytes) (err error) {
	ends.command = flow.Command(p.Flow, "sink", ends.remoteFile)
	if p.Data == "zero" && limit == 0 {
		ends.stdin, err = os.Open("/dev/zero")
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	ends.stdin = read
	ends.local, err = p.startFlow(nil, write, "source", p.Data, strconv.FormatInt(int64(limit), 10))
	return err
}

func (p *Private) openDownload(ends *flows, limit unit.Bytes) error {
	ends.command = flow.Command(p.Flow, "source", ends.remoteFile, p.Data, strconv.FormatInt(int64(limit), 10))
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	ends.stdout = write
	ends.local, err = p.startFlow(read, nil, "sink")
	return err
}

// handOver closes our copies of what the client has now.
func (ends *flows) handOver() {
	for _, f := range []*os.File{ends.stdin, ends.stdout} {
		if f != nil {
			f.Close()
		}
	}
	ends.stdin, ends.stdout = nil, nil
}

func (ends *flows) close() {
	ends.handOver()
	if ends.local != nil {
		ends.local.close()
	}
	ends.remote.Close()
	_ = os.Remove(ends.remoteFile)
}

// received counts bytes at the sink, at whichever end it is.
func (ends *flows) received(d record.Direction) func() int64 {
	if d == record.Download {
		return ends.local.counter.Bytes
	}
	return ends.remote.Bytes
}

// begin starts the client.
func (p *Private) begin(t record.Trial, command string, stdin, stdout *os.File) (*client, error) {
	p.Server.Fresh(false)
	log := p.file("log")
	return p.startClient(p.Client(t.Asked(), log, command), nil, t.Asked(), log, stdin, stdout)
}

// send opens the flows for limit bytes (0: no end) and starts the client on it. The
// caller closes the flows.
func (p *Private) send(t record.Trial, limit unit.Bytes) (*flows, *client, error) {
	ends, err := p.open(t, limit)
	if err != nil {
		return nil, nil, err
	}
	c, err := p.begin(t, ends.command, ends.stdin, ends.stdout)
	if err != nil {
		ends.close()
		return nil, nil, err
	}
	ends.handOver()
	return ends, c, nil
}

// connection is the server's side of the last connection; nil if the client
// never got that far.
func (p *Private) connection() *loopback.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	conn, _ := p.Server.Next(ctx)
	return conn
}

// awaitServer waits for the server's process of the last connection, so that
// its end does not disturb the next trial, and returns its CPU time.
func (p *Private) awaitServer() time.Duration {
	conn := p.connection()
	if conn == nil {
		return 0
	}
	return conn.Ended(serverGrace)
}

// login times one login and a command that does nothing.
func (p *Private) login(ctx context.Context, t record.Trial) (record.Sample, error) {
	const mark = "sshpace-ready"
	var ready time.Duration
	c, s, trialErr, err := p.converse(ctx, p.Connect, func(out *os.File) (*client, error) {
		return p.begin(t, "echo "+mark, nil, out)
	}, func(c *client, out *os.File) error {
		if _, err := awaitMark(out, mark); err != nil {
			return err
		}
		ready = time.Since(c.started)
		return c.awaitEnd(p.Connect)
	})
	if err != nil {
		return s, err
	}
	server, client := p.awaitServer(), c.cpu()
	if c.finish(&s, trialErr); s.Outcome == record.OK {
		s.Phases = &record.Phases{LoginNS: ready, ClientCPUNS: &client, ServerCPUNS: &server}
	}
	p.explain(&s)
	return s, nil
}

// copy moves exactly SizeBytes and times the whole process, login included, as
// a shell loop around `dd | ssh` does.
func (p *Private) copy(ctx context.Context, t record.Trial) (s record.Sample, err error) {
	ends, c, err := p.send(t, t.SizeBytes)
	if err != nil {
		return s, err
	}
	defer ends.close()
	s.Start = c.started
	trialErr := p.awaitCopy(ctx, c, ends.received(t.Direction))
	elapsed := time.Since(c.started)
	c.kill()
	if trialErr == nil && ends.local != nil {
		trialErr = ends.local.awaitEnd(p.Connect) // a sink may still have to read what the client has written
	}
	server := p.awaitServer()
	s.Bytes = unit.Bytes(ends.received(t.Direction)())
	if trialErr == nil && s.Bytes != t.SizeBytes {
		trialErr = &failure{record.Broken, fmt.Sprintf("%d of %d bytes arrived", s.Bytes, t.SizeBytes)}
	}
	c.finish(&s, trialErr)
	if client := c.cpu(); s.Outcome == record.OK {
		s.ElapsedNS, s.ClientCPUNS, s.ServerCPUNS = elapsed, &client, &server
	}
	p.explain(&s)
	return s, nil
}

// awaitCopy waits for the end of the client, as long as bytes keep arriving.
func (p *Private) awaitCopy(ctx context.Context, c *client, received func() int64) error {
	for last, since := received(), time.Now(); ; {
		err := c.sleep(ctx, 50*time.Millisecond)
		if errors.Is(err, errEnded) {
			return c.exitError()
		}
		if err != nil {
			return err
		}
		if now := received(); now > last {
			last, since = now, time.Now()
		} else if time.Since(since) > p.Connect {
			return errStalled
		}
	}
}

// explain adds what the private server said to a sample that failed for a
// reason that lies with it.
func (p *Private) explain(s *record.Sample) {
	switch s.Outcome {
	case record.Denied, record.Broken, record.Refused:
		if tail := p.Server.LogTail(); tail != "" {
			s.Detail += " (server: " + tail + ")"
		}
	}
}

// killAsync kills the client without waiting.
func (c *client) killAsync() { proc.KillGroup(c.cmd) }

// awaitEnd waits for the client to end by itself with exit code 0.
func (c *client) awaitEnd(limit time.Duration) error {
	select {
	case <-c.ended:
		return c.exitError()
	case <-time.After(limit):
		return errStalled
	}
}

func (c *client) exitError() error {
	if c.cmd.ProcessState.Success() {
		return nil
	}
	return errEnded
}
