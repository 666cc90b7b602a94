package reach_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// lives is a command that writes its process id down and then lives as long as that is there.
func lives(dir, first string) string {
	return first + "echo $$ > " + dir + "/pid.tmp; mv " + dir + "/pid.tmp " + dir + "/pid; echo started; while [ -e " + dir + "/pid ]; do sleep 0.1; done"
}

// gone waits until what lives has ended, and ends it itself where nobody else does; that it never
// began is an error.
func gone(t *testing.T, dir string, stays bool) error {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	var pid int
	if _, bad := fmt.Sscan(string(text), &pid); err != nil || bad != nil {
		return fmt.Errorf("the command has not started: %w", errors.Join(err, bad))
	}
	if stays && pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	waittest.Gone(t, pid)
	return nil
}

// ends: --timeout and interrupts end the command there, and wait for no other end.
func (e engine) ends(t *testing.T) {
	s := of(sshtest.StartSshdForOther(t)) // sshd signals nothing of root's
	for _, c := range []struct {
		name, first string
		timeout     bool
		interrupt   bool // once it has started
		twice       bool
		output      int64
		class       fleet.Class
		stays       bool // nobody signals it; it sees the end of its connection, or does not
	}{
		{name: "timeout", timeout: true, class: fleet.CommandTimeout},
		{name: "timeout of one that ignores TERM", first: "trap '' TERM HUP; ", timeout: true, class: fleet.CommandTimeout, stays: true},
		{name: "interrupt", interrupt: true, class: fleet.Cancelled},
		{name: "two interrupts", first: "trap '' TERM HUP; ", interrupt: true, twice: true, class: fleet.Cancelled, stays: true},
		{name: "too much output", output: 4, class: fleet.OutputLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			waittest.InTime(t, time.Second, func(limit time.Duration) error {
				dir := sshtest.OpenDir(t, 0o777)
				ctx, hard := context.WithCancel(t.Context())
				defer hard()
				drain, soft := context.WithCancel(ctx)
				sink := &sshtest.Told{OnOutput: func(fleet.Event) error {
					if c.interrupt {
						soft()
					}
					if c.twice {
						hard()
					}
					return nil
				}}
				if !c.timeout {
					limit = 0
				}
				r := e.run(ctx, t, s, fanout.Params{Drain: drain, CommandTimeout: limit, MaxOutput: c.output}, fleet.Command{Line: lives(dir, c.first)}, sink)[0]
				if r.Class != c.class || r.Ran != fleet.RanYes || r.Status() != fleet.Failed || r.Err == "" {
					return fmt.Errorf("got %+v", r)
				}
				if e.NoSignals && !c.stays && !strings.Contains(r.Err, "may still run there") {
					return fmt.Errorf("a command that was left behind: %+v", r)
				}
				return gone(t, dir, c.stays || e.NoSignals)
			})
		})
	}
	t.Run("in the background", func(t *testing.T) { // what holds the output when the command has ended is signaled by nobody
		t.Parallel()
		waittest.InTime(t, time.Second, func(limit time.Duration) error {
			line := fmt.Sprintf("sleep %d & echo", 30+limit/time.Second)
			r := e.run(t.Context(), t, s, fanout.Params{CommandTimeout: limit}, fleet.Command{Line: line}, &sshtest.Told{})[0]
			if r.Class != fleet.CommandTimeout || r.Ran != fleet.RanYes || !strings.Contains(r.Err, "may still run there") {
				return fmt.Errorf("got %+v", r)
			}
			return nil
		})
	})
}

// dialogues: a subsystem is spoken with, and what is said of it is the result.
func (e engine) dialogues(t *testing.T) {
	s := of(sshtest.StartSshdForOther(t, "Subsystem echo /bin/cat"))
	big := strings.Repeat("0123456789abcdef", 1<<18)
	says := func(c io.ReadWriter, text string) error {
		sent := make(chan error, 1)
		go func() { _, err := io.WriteString(c, text); sent <- err }()
		back := make([]byte, len(text))
		_, err := io.ReadFull(c, back)
		if err == nil && string(back) != text {
			err = errors.New("something else came back")
		}
		return errors.Join(err, <-sent)
	}
	for _, c := range []struct {
		name  string
		talk  fleet.Dialogue
		limit time.Duration
		ran   fleet.Ran
		class fleet.Class
		exit  int
		says  string
	}{
		{name: "echo", talk: func(_ context.Context, h host.Host, c fleet.Channel) error {
			if err := says(c, big); err != nil {
				return err
			}
			return c.Output(fleet.Stdout, []byte("echo of "+h.Name))
		}, ran: fleet.RanYes, says: "echo of 127.0.0.1"},
		{name: "nothing said", talk: func(context.Context, host.Host, fleet.Channel) error { return nil }, ran: fleet.RanYes},
		{name: "failure", talk: func(_ context.Context, _ host.Host, c fleet.Channel) error {
			return errors.Join(says(c, "x"), errors.New("failed at this"))
		}, ran: fleet.RanYes, exit: 1},
		{name: "timeout", limit: time.Second, talk: func(ctx context.Context, _ host.Host, c fleet.Channel) error {
			_, err := io.Copy(io.Discard, c)
			return errors.Join(err, context.Cause(ctx))
		}, ran: fleet.RanYes, class: fleet.CommandTimeout, exit: -1},
		{name: "farewell", limit: time.Second, talk: func(ctx context.Context, _ host.Host, c fleet.Channel) error {
			<-ctx.Done() // there is some time to leave the host as it should be
			if _, err := c.Write([]byte("bye")); err != nil {
				return err
			}
			bye := make([]byte, 3)
			if _, err := io.ReadFull(c, bye); err != nil {
				return err
			}
			return c.Output(fleet.Stdout, bye)
		}, ran: fleet.RanYes, class: fleet.CommandTimeout, exit: -1, says: "bye"},
		{name: "second command", talk: func(ctx context.Context, _ host.Host, c fleet.Channel) error {
			counted, err := c.Exec(ctx, "wc -c", strings.NewReader(big))
			if errors.Is(err, fleet.ErrNoExec) && e.NoExec {
				return nil
			}
			_, wrong := c.Exec(ctx, "exit 3", strings.NewReader(""))
			if strings.TrimSpace(string(counted)) != fmt.Sprint(len(big)) || wrong == nil || wrong.Error() != "exit 3" {
				return fmt.Errorf("%q, %w, %v", counted, err, wrong)
			}
			return says(c, "x")
		}, ran: fleet.RanYes},
		{name: "second channel", talk: func(ctx context.Context, _ host.Host, c fleet.Channel) error {
			other, err := c.Open(ctx, "echo")
			if errors.Is(err, fleet.ErrOneSession) && e.NoExec {
				return says(c, "x")
			}
			if err != nil {
				return err
			}
			unread := make(chan error, 1)
			go func() { _, err := io.WriteString(c, big); unread <- err }() // nobody reads what comes back
			err = says(other, big)
			err = errors.Join(err, other.Close())
			absent, refused := c.Open(ctx, "no such subsystem")
			if refused == nil { // a master says it later
				_, refused = io.ReadFull(absent, make([]byte, 1))
			}
			if !errors.Is(refused, fleet.ErrNoExec) && !errors.Is(refused, io.EOF) {
				err = errors.Join(err, fmt.Errorf("no such subsystem: %v", refused))
			}
			_, rest := io.ReadFull(c, make([]byte, len(big)))
			return errors.Join(err, rest, <-unread)
		}, ran: fleet.RanYes},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, sink := e.one(t, s, fanout.Params{CommandTimeout: c.limit}, fleet.Command{Line: "echo", Dialogue: c.talk})
			if r.Ran != c.ran || r.Class != c.class || r.Exit != c.exit || sink.Text(fleet.Stdout) != c.says {
				t.Errorf("got %+v, says %q", r, sink.Text(fleet.Stdout))
			}
		})
	}
	for name, longer := range map[string]func(time.Duration) fleet.Command{
		"command": func(than time.Duration) fleet.Command {
			return fleet.Command{Line: fmt.Sprintf("sleep %g", 1+than.Seconds())}
		},
		"dialogue": func(than time.Duration) fleet.Command {
			return fleet.Command{Line: "echo", Dialogue: func(ctx context.Context, _ host.Host, c fleet.Channel) error {
				select { // while nothing is said
				case <-time.After(than + time.Second):
				case <-ctx.Done():
				}
				return says(c, "x")
			}}
		},
	} {
		t.Run("longer than a login may take, "+name, func(t *testing.T) {
			t.Parallel()
			waittest.InTime(t, 2*time.Second, func(limit time.Duration) error {
				s := s
				s.ConnectTimeout = limit
				if r, _ := e.one(t, s, fanout.Params{}, longer(limit)); r.Status() != fleet.OK {
					return fmt.Errorf("got %+v", r)
				}
				return nil
			})
		})
	}
	const refusal = 32 << 10
	t.Run("refusal", func(t *testing.T) { // all that a server writes is passed on, however late it is read
		t.Parallel()
		// sshd passes on no standard error of a subsystem.
		other := (&sshtest.Server{Exec: func(s *sshtest.Session) { s.Stderr().Write(make([]byte, refusal)); s.Exit(1) }}).Start(t)
		s := servers{User: s.User, Key: s.Key, HostKey: other.HostKey.PublicKey(), Ports: []int{other.Port()}}
		got := 0
		slow := &sshtest.Told{OnOutput: func(e fleet.Event) error {
			time.Sleep(2 * time.Millisecond)
			got += len(e.Data)
			return nil
		}}
		r := e.run(t.Context(), t, s, fanout.Params{}, fleet.Command{Line: "refuses", Dialogue: func(_ context.Context, _ host.Host, c fleet.Channel) error {
			_, err := io.ReadFull(c, make([]byte, 1))
			return err
		}}, slow)[0]
		if r.Err != "EOF" || got != refusal {
			t.Errorf("%d of %d bytes, %+v", got, refusal, r)
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		drain, soft := context.WithCancel(t.Context())
		r := e.run(t.Context(), t, s, fanout.Params{Drain: drain}, fleet.Command{Line: "echo", Dialogue: func(ctx context.Context, _ host.Host, c fleet.Channel) error {
			soft()
			_, err := io.Copy(io.Discard, c)
			return errors.Join(err, context.Cause(ctx))
		}}, &sshtest.Told{})[0]
		if r.Class != fleet.Cancelled || r.Ran != fleet.RanYes {
			t.Errorf("got %+v", r)
		}
	})
}

// refusals: what a server refuses has not run, and it is said what was refused.
func (e engine) refusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string // of sshd_config
		other bool     // another key is known for the host
		from  sshtest.Step
		talk  fleet.Dialogue
		class fleet.Class
		phase fleet.Phase
	}{
		{name: "host key", other: true, from: sshtest.AtVersion, class: fleet.HostKeyChanged, phase: fleet.PhaseHostkey},
		{name: "login", lines: []string{"AuthorizedKeysFile none"}, from: sshtest.AtService, class: fleet.AuthFailed, phase: fleet.PhaseAuth},
		{name: "session", lines: []string{"MaxSessions 0"}, from: sshtest.AtLogin, class: fleet.ExecRefused, phase: fleet.PhaseExec},
		{name: "subsystem", talk: func(_ context.Context, _ host.Host, c fleet.Channel) error {
			_, err := io.Copy(io.Discard, c)
			return err
		}, from: sshtest.AtLogin, class: fleet.ExecRefused, phase: fleet.PhaseExec},
	} {
		if c.from < e.From {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := of(sshtest.StartSshd(t, c.lines...))
			if c.other {
				s.HostKey = sshtest.NewKey(t).PublicKey()
			}
			r, _ := e.one(t, s, fanout.Params{}, fleet.Command{Line: "none", Dialogue: c.talk})
			if r.Ran != fleet.RanNo || r.Class != c.class || r.Phase != c.phase || r.Exit != -1 || r.Err == "" || r.Status() != fleet.Unreachable {
				t.Errorf("got %+v", r)
			}
		})
	}
}
