//go:build linux

package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Remote drives connections to a user's host, through the user's own ssh and configuration. Nothing
// is installed there: the remote end is a line of POSIX shell. It keeps a pause between connections
// and gives up when the host keeps refusing them (sshd_config(5) MaxStartups, PerSourcePenalties).
type Remote struct {
	Rig
	Once  bool          // Look does not ask again
	Login time.Duration // limit of a whole login, where that is longer than Connect

	sitting
	ticket *admit.Ticket // of the host's logins
	path   path
}

// HostError says that a host cannot be measured at all.
type HostError struct{ openssh.Failed }

// dropped distinguishes a server that closes an accepted connection, which is worth another try,
// from a port on which nothing listens, or no SSH server.
func (e *HostError) dropped() bool {
	return e.Outcome == record.Refused && slices.Contains([]openssh.Cause{openssh.NoVersion, openssh.Throttled, openssh.Penalized}, e.Cause)
}

func (e *HostError) Error() string { return e.Said }

// Look is the result of the first login.
type Look struct {
	Offer   alg.Offer
	Version string // software version of the server
	Machine string // system and CPU, "" if the host does not say
	Proc    bool   // the server's costs can be read
	Strict  bool   // both sides do strict key exchange (CVE-2023-48795)
	Login   time.Duration
	// RoundTrip is the time from a question to its answer through the open connection.
	RoundTrip time.Duration
}

// Look logs in once and reads the host's offer. A failed login is a *HostError; a refusal is tried
// again a few times unless Once is set, because a host that limits connections drops some at
// random.
func (r *Remote) Look(ctx context.Context) (Look, error) {
	for {
		if !r.due(ctx) {
			return Look{}, ctx.Err()
		}
		look, err := r.look(ctx)
		var hostErr *HostError
		if again := r.again(errors.As(err, &hostErr) && hostErr.dropped()); r.Once || !again {
			return look, err
		}
	}
}

func (r *Remote) look(ctx context.Context) (Look, error) {
	mark := openssh.NewMark()
	script := "uname -srm; grep -m1 -e \"^model name\" -e \"^Model\" /proc/cpuinfo; echo " + mark + "-end; while read x; do echo " + mark + "-back; done"
	command := openssh.Shell(announce(mark) + "; " + script)
	var look Look
	asked, ask, err := os.Pipe()
	if err != nil {
		return look, err
	}
	defer ask.Close()
	c, sample, bodyErr, err := r.converse(ctx, r.loginTimeout(), func(out *os.File) (*client, error) {
		defer asked.Close()
		return r.start(r.Destination.Verbose(), record.Trial{}, r.file("log"), command, asked, out)
	}, func(c *client, out *os.File) error {
		defer ask.Close()
		rest, err := openssh.AwaitMark(out, mark+"-ready")
		if err != nil {
			return err
		}
		look.Login = time.Since(c.Began)
		_, procErr := proc.ParseSchedstat(rest)
		look.Proc = procErr == nil
		for {
			line, err := openssh.AwaitMark(out, "")
			if err != nil {
				return err
			}
			if strings.HasPrefix(line, mark+"-end") {
				break
			}
			look.Machine = describe(look.Machine, line)
		}
		look.RoundTrip, err = quickest(func() error {
			if _, err := ask.WriteString("\n"); err != nil {
				return openssh.ErrEnded
			}
			_, err := openssh.AwaitMark(out, mark+"-back")
			return err
		})
		return err
	})
	if err != nil {
		return look, err
	}
	n, why := c.finish(&sample, bodyErr)
	if why.Outcome == record.TimedOut {
		why = n.Late(r.loginTimeout())
	}
	if why.Outcome != record.OK {
		return look, &HostError{why}
	}
	look.Offer, look.Version, look.Strict = n.Server, n.Banner, n.Strict
	return look, nil
}

// maxMachine is the most text that a host may send about itself, in bytes.
const maxMachine = 300

// describe adds a line of uname or /proc/cpuinfo to the description of a host.
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
	if !r.due(ctx) {
		return record.Sample{Outcome: record.Aborted, Start: time.Now()}, nil
	}
	s, err := r.trial(ctx, t)
	if err := cmp.Or(err, r.reckon(s)); err != nil {
		return s, err
	}
	return s, nil
}

func (r *Remote) trial(ctx context.Context, t record.Trial) (record.Sample, error) {
	if t.Workload == record.Login {
		return r.login(ctx, t)
	}
	return record.Sample{}, fmt.Errorf("workload %q is not for remote hosts", t.Workload)
}

// due waits until the host may be logged in to; false says that ctx has ended.
func (r *Remote) due(ctx context.Context) bool {
	if r.ticket == nil {
		r.ticket = admit.New(admit.OneByOne(admit.ShortPause)).Ticket()
	}
	return r.ticket.Admit(ctx, r.Destination.Label) == nil
}

// again ends a login, and reports whether the host turned it away and may be tried again.
func (r *Remote) again(refused bool) bool {
	if !refused {
		r.ticket.End(admit.Done)
		return false
	}
	r.ticket.End(admit.TurnedAway)
	_, again := r.ticket.Again()
	return again
}

// loginTimeout is how long a login may take until the remote side is ready.
func (r *Remote) loginTimeout() time.Duration { return max(r.Connect, r.Login) }

// announce returns a command that prints the mark and, where there is a /proc, the cost of the
// server's process so far. The empty line ends any line that start-up files left open.
func announce(mark string) string {
	return "echo; echo " + mark + "-ready $(cat /proc/$PPID/schedstat 2>/dev/null)"
}

// start starts a client that runs a command on the host.
func (r *Remote) start(d openssh.Destination, t record.Trial, log, command string, in, out *os.File) (*client, error) {
	return r.startClient(r.SSH.Command(d, t.Asked(), log, r.Connect, command), d.Env, t.Asked(), log, in, out)
}

// login times one login; its cost on the server is not visible.
func (r *Remote) login(ctx context.Context, t record.Trial) (record.Sample, error) {
	c, s, ready, trialErr, err := r.timed(ctx, r.loginTimeout(), func(command string, out *os.File) (*client, error) {
		return r.start(r.Destination, t, r.file("log"), command, nil, out)
	})
	if err != nil {
		return s, err
	}
	if c.finish(&s, trialErr); s.Outcome == record.OK {
		cpu := c.CPU()
		s.Phases = &record.Phases{LoginNS: ready, ClientCPUNS: &cpu}
	}
	return s, nil
}
