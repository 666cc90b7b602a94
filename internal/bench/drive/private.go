//go:build linux

package drive

import (
	"cmp"
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
	"sshpace/internal/ssh/openssh"
)

// Private drives connections to the server of this run.
type Private struct {
	Rig
	// Client returns the command line that runs remote under the wanted suite and writes debug
	// lines to log.
	Client func(want alg.Suite, log, remote string) []string

	sitting
}

// LoginError says that the private server refused our own key, or that another server answered:
// then nothing can be measured.
type LoginError struct{ Detail string }

func (e *LoginError) Error() string {
	return "the private server cannot be logged in to: " + e.Detail
}

// Run carries out one trial. It is a lab.Driver.
func (p *Private) Run(ctx context.Context, t record.Trial) (record.Sample, error) {
	s, err := p.trial(ctx, t)
	return s, cmp.Or(err, admitted(s))
}

// admitted returns an error if the private server refused the login.
func admitted(s record.Sample) error {
	if s.Outcome == record.Denied || s.Outcome == record.HostKey {
		return &LoginError{s.Detail}
	}
	return nil
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

func (p *Private) begin(t record.Trial, command string, stdin, stdout *os.File) (*client, error) {
	p.Server.Fresh(false)
	log := p.file("log")
	return p.startClient(p.Client(t.Asked(), log, command), nil, t.Asked(), log, stdin, stdout)
}

// awaitServer waits for the server's process of the last connection, so that its end does not
// disturb the next trial, and returns its CPU time: zero if the client never got that far.
func (p *Private) awaitServer() time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if conn, ok := p.Server.Next(ctx); ok {
		return conn.Leave(loopback.Grace)
	}
	return 0
}

// login times one login and a command that does nothing.
func (p *Private) login(ctx context.Context, t record.Trial) (record.Sample, error) {
	c, s, ready, trialErr, err := p.timed(ctx, p.Connect, func(command string, out *os.File) (*client, error) { return p.begin(t, command, nil, out) })
	if err != nil {
		return s, err
	}
	server, client := p.awaitServer(), c.CPU()
	if c.finish(&s, trialErr); s.Outcome == record.OK {
		s.Phases = &record.Phases{LoginNS: ready, ClientCPUNS: &client, ServerCPUNS: &server}
	}
	p.explain(&s)
	return s, nil
}

// copy moves exactly SizeBytes and times the whole process, login included, as a shell loop around
// `dd | ssh` does.
func (p *Private) copy(ctx context.Context, t record.Trial) (s record.Sample, err error) {
	down, size := t.Direction == record.Download, int64(t.SizeBytes)
	what := []string{"sink"}
	if down {
		what = []string{"source", p.Data, strconv.FormatInt(size, 10)}
	}
	far, err := flow.New(p.Helper("flow"), p.file("far"), what...)
	if err != nil {
		return s, err
	}
	defer far.Close()
	read, write, err := flow.Pipe()
	if err != nil {
		return s, err
	}
	var c *client
	var near *flow.Near
	received := far.Bytes
	if down {
		near = flow.Sink(read)
		received = near.Bytes
		c, err = p.begin(t, far.Command(), nil, write)
		write.Close()
	} else {
		near = flow.Source(write, p.Data == "random", size)
		c, err = p.begin(t, far.Command(), read, nil)
		read.Close()
	}
	if err != nil {
		return s, err
	}
	s.Start = c.Began
	trialErr := p.awaitCopy(ctx, c, received)
	elapsed := time.Since(c.Began)
	c.Kill()
	select {
	case <-near.Ended: // a sink may still have to read the client's last bytes
	case <-time.After(p.Connect):
		trialErr = cmp.Or(trialErr, openssh.ErrStalled)
	}
	server := p.awaitServer()
	s.Bytes = unit.Bytes(received())
	if trialErr == nil && s.Bytes != t.SizeBytes {
		trialErr = &failure{record.Broken, fmt.Sprintf("%d of %d bytes arrived", s.Bytes, t.SizeBytes)}
	}
	c.finish(&s, trialErr)
	if client := c.CPU(); s.Outcome == record.OK {
		s.ElapsedNS, s.ClientCPUNS, s.ServerCPUNS = elapsed, &client, &server
	}
	p.explain(&s)
	return s, nil
}

// awaitCopy waits for the end of the client, as long as bytes keep arriving.
func (p *Private) awaitCopy(ctx context.Context, c *client, received func() int64) error {
	for last, since := received(), time.Now(); ; {
		err := c.sleep(ctx, 50*time.Millisecond)
		if errors.Is(err, openssh.ErrEnded) {
			return c.awaitEnd(0)
		}
		if err != nil {
			return err
		}
		if now := received(); now > last {
			last, since = now, time.Now()
		} else if time.Since(since) > p.Connect {
			return openssh.ErrStalled
		}
	}
}

// explain adds the private server's message to a sample that failed because of it.
func (p *Private) explain(s *record.Sample) {
	switch s.Outcome {
	case record.Denied, record.Broken, record.Refused:
		s.Detail = p.Server.Explained(s.Detail)
	}
}

// awaitEnd waits for the client to end by itself with exit code 0.
func (c *client) awaitEnd(limit time.Duration) error {
	switch {
	case !c.Await(limit):
		return openssh.ErrStalled
	case !c.ProcessState.Success():
		return openssh.ErrEnded
	}
	return nil
}
