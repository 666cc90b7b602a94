//go:build linux

package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/relay"
	"sshpace/internal/sys/safedir"
)

// Ends are the client and the server of logins, with a relay between them if the server is our own.
type Ends struct {
	bed.Bed
	Dir    string // for logs and sockets
	Native string // our own program, to log in by `run` instead of ssh; "" is ssh
	Kex    string // default suite of logins; "" is the one that both sides prefer

	relay   *relay.Relay
	prompt  bool // the relay acknowledges at once
	traffic *Traffic
}

// Between prepares the ends of a bed. The caller closes them.
func Between(b bed.Bed, dir string) (*Ends, error) {
	e := &Ends{Bed: b, Dir: dir}
	if !b.Own() {
		return e, nil
	}
	return e, e.relayTo(b.Server)
}

// Prompt returns ends with the same server between which nobody waits for an acknowledgement, so
// that two thirds of a login's time do not hide the differences. The caller closes them.
func (e *Ends) Prompt() (*Ends, error) { return e.with(e.Server) }

// with returns prompt ends with another server.
func (e *Ends) with(s *loopback.Server) (*Ends, error) {
	variant := *e
	variant.prompt = true
	return &variant, variant.relayTo(s)
}

// relayTo puts a relay before our own server.
func (e *Ends) relayTo(s *loopback.Server) (err error) {
	e.Server, e.traffic = s, &Traffic{}
	if e.relay, err = relay.To(net.JoinHostPort(s.Address()), relay.Options{Watch: e.traffic.Watch, Prompt: e.prompt}); err != nil {
		return err
	}
	e.Destination.Port = uint16(e.relay.Port())
	return nil
}

// Close ends the relay.
func (e *Ends) Close() error {
	if e.relay == nil {
		return nil
	}
	return e.relay.Close()
}

// Watch carries out a login, which may take WholeLogin times as long as connecting.
func (e *Ends) Watch(ctx context.Context, argv ArgvFunc) (*Login, error) {
	ctx, cancel := context.WithTimeout(ctx, WholeLogin*e.Connect)
	defer cancel()
	return Watch(ctx, e.Dir, argv, e.Destination.Env)
}

// WholeLogin is how many times as long a login may take as connecting.
const WholeLogin = 3

// Argv returns the command line of a login that runs command, with settings of ssh_config before
// all others.
func (e *Ends) Argv(want alg.Suite, command string, settings ...string) ArgvFunc {
	want.Kex = cmp.Or(want.Kex, e.Kex)
	if e.Native != "" {
		return e.native(want, command, settings)
	}
	d := e.Destination.Verbose().With(settings...)
	return func(log string) []string { return e.SSH.Command(d, want, log, e.Connect, command) }
}

// native returns the command line of our own client.
func (e *Ends) native(want alg.Suite, command string, settings []string) ArgvFunc {
	leading := slices.Concat([]string{"run", "--engine", "native", "--no-record", "--quiet", "--connect-timeout", e.Connect.String()},
		e.Destination.With(slices.Concat(settings, want.Settings(), []string{"ControlPath=none"})...).Options())
	return func(log string) []string {
		return slices.Concat([]string{e.Native}, leading, []string{"--login-log", log, "-w", e.Destination.Host, "--", command})
	}
}

// Plain returns the case of an ordinary login.
func (e *Ends) Plain() Case {
	return e.as("", "plain")
}

// RoundTrips counts the round trips of a plain login, TCP's included, from its times over two paths
// of different lengths; 0 if the server is not our own. The shortest of some tries counts, because
// a busy machine adds its own time: of more tries if the count is not close to a whole number.
func (e *Ends) RoundTrips(ctx context.Context) (int, error) {
	if e.Server == nil {
		return 0, nil
	}
	const short, long = 20 * time.Millisecond, 220 * time.Millisecond
	var near, far time.Duration
	for range mostTries {
		again, err := e.over(ctx, short, 4)
		if err != nil {
			return 0, err
		}
		near = shorter(near, again)
		if again, err = e.over(ctx, long, 2); err != nil {
			return 0, err
		}
		far = shorter(far, again)
		if count := float64(far-near) / float64(long-short); math.Abs(count-math.Round(count)) <= certain {
			break
		}
	}
	return int(math.Round(float64(far-near) / float64(long-short))), nil
}

// The most counts of round trips, and how close to a whole number is one: a busy machine adds a
// third of a round trip to a login, in one direction or the other.
const (
	mostTries = 3
	certain   = 0.25
)

// shorter returns the smaller of two times, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// over returns the time of a login over a path, without waits for acknowledgements.
func (e *Ends) over(ctx context.Context, rtt time.Duration, tries int) (least time.Duration, err error) {
	r, err := relay.To(net.JoinHostPort(e.Server.Address()), relay.Options{Path: relay.Path{Delay: rtt / 2}, Prompt: true})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	longer := *e
	longer.Destination.Port = uint16(r.Port())
	for range tries {
		l, err := longer.Watch(ctx, longer.Argv(alg.Suite{}, "true"))
		if err != nil {
			return 0, err
		}
		e.After(ctx, &record.Reading{})
		least = shorter(least, l.Whole)
	}
	return least, nil
}

// After adds the CPU time of our server for the last login, and the traffic that the relay saw, to
// its reading; nothing where the server is not ours.
func (e *Ends) After(ctx context.Context, r *record.Reading) {
	if e.Server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, loopback.Grace)
	defer cancel()
	if conn, ok := e.Server.Next(ctx); ok {
		if cpu := conn.Leave(loopback.Grace); cpu > 0 {
			r.ServerCPUNS = &cpu
		}
	}
	w := e.traffic.Wire()
	r.UpBytes, r.DownBytes, r.Stalls = w.Up, w.Down, w.Stalls
	e.traffic.Reset()
}

// KexCases returns a login with each of some key exchanges.
func (e *Ends) KexCases(names []string) (cases []Case) {
	for _, name := range names {
		cases = append(cases, e.caseOf(KexFactor, name, e.Argv(alg.Suite{Kex: standard(name, names)}, "true")))
	}
	return cases
}

// standard returns the name by which a key exchange with several names is measured: the standard
// one, if it was asked for.
func standard(name string, asked []string) string {
	if by := alg.Canonical(alg.Kex, name); slices.Contains(asked, by) {
		return by
	}
	return name
}

// ClientCases returns a login by ssh and one by our own client; program is our executable.
func (e *Ends) ClientCases(program string) []Case {
	own := *e
	own.Native = program
	return []Case{e.as(ClientFactor, "ssh"), own.as(ClientFactor, "sshpace run")}
}

// as returns the plain login as a level of a factor.
func (e *Ends) as(factor, level string) Case {
	return e.caseOf(factor, level, e.Argv(alg.Suite{}, "true"))
}

// caseOf returns a level of a factor that is a login between these ends.
func (e *Ends) caseOf(factor, level string, argv ArgvFunc) Case {
	return Case{Factor: factor, Level: level, Argv: argv, Ends: e, After: e.After}
}

// Master is a connection that sessions share (ssh_config(5) ControlMaster).
type Master struct {
	*openssh.Running
	socket string
	dir    *os.File // that the socket is in
}

// Socket returns where the master listens.
func (m *Master) Socket() string { return m.socket }

// StartMaster starts an ssh that is a ControlMaster, and waits until it has logged in.
func (e *Ends) StartMaster(ctx context.Context) (*Master, error) {
	short, dir, err := safedir.Short(e.Dir)
	if err != nil {
		return nil, err
	}
	path := short + "/master"
	log := filepath.Join(e.Dir, "master.log")
	d := e.Destination.With("BatchMode=yes", "StrictHostKeyChecking=yes", "ControlPersist=no")
	d.Extra = append([]string{"-E", log, "-M", "-N", "-S", path}, d.Extra...)
	argv := slices.Concat([]string{e.SSH.Path}, d.Options(), []string{"--", d.Host})
	ssh, err := openssh.Start(argv, d.Env, log, nil, nil, (*exec.Cmd).Start)
	if err != nil {
		dir.Close()
		return nil, err
	}
	m := &Master{ssh, path, dir}
	if sched.Poll(ctx, e.Connect, 20*time.Millisecond, func() bool { return e.SSH.Check(ctx, path, d.Host) == nil }) != nil {
		m.Kill()
		n, logged := m.Negotiation()
		dir.Close()
		return nil, errors.Join(fmt.Errorf("a ControlMaster cannot be started: %s", m.Failure(n).Said), logged)
	}
	m.SoFar() // it has nothing to say while it is measured
	if e.Server != nil {
		e.Server.Fresh(false)
		e.traffic.Reset()
	}
	return m, nil
}

// Close ends the master.
func (m *Master) Close() error {
	m.Kill()
	_, err := m.Negotiation()
	return errors.Join(err, m.dir.Close())
}

// SessionCase returns a session over the master at a socket. If the master gives none, because the
// server allows no more (sshd_config(5) MaxSessions) or the master is gone, ssh would silently make
// a connection instead: a ProxyCommand that fails prevents that.
func (e *Ends) SessionCase(level, socket string) Case {
	return Case{Factor: ConnectionFactor, Level: level, Session: true, Argv: func(log string) []string {
		d := e.Destination.With("ControlMaster=no", "BatchMode=yes")
		d.Way, d.Extra = "false", append([]string{"-v", "-v", "-E", log, "-S", cmp.Or(socket, "none")}, d.Extra...)
		return slices.Concat([]string{e.SSH.Path}, d.Options(), []string{"--", d.Host, "true"})
	}}
}
