package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/shell"
	"sshpace/internal/measure/ping"
	"sshpace/internal/show/latency"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/terminal"
)

// pingFlags are the flags of `sshpace ping`.
type pingFlags struct {
	connection        connectionFlags
	ssh               string
	connect, interval seconds
	count             int
	only              []string
	load              string
	json, quiet       bool
}

func newPingCommand(sys System) *cobra.Command {
	var f pingFlags
	cmd := &cobra.Command{
		Use:   "ping [user@]host",
		Short: "Measure the latency of typing: how long a byte takes through ssh and back",
		Long: `Opens sessions of the real ssh, sends a byte in each at a constant rate, and shows how
long each takes to come back: through a terminal (pty), the same without hidden
keystroke timing (unobscured, ssh since 9.5), and without a terminal (pipe).

Bytes never wait for earlier ones, and their time counts from when they were to be sent:
a stall shows in all bytes that it delays. With --load the same is measured beside a bulk
transfer over another connection. Without -c it goes on until Ctrl-C, as ping(8) does.`,
		Example: `  sshpace ping user@host
  sshpace ping -c 100 --interval 0.1 --only pty host
  sshpace ping -c 50 --load=upload --json host`,
		Args: exactlyOneHost,
		RunE: func(cmd *cobra.Command, args []string) error { return runPing(cmd.Context(), sys, f, args[0]) },
	}
	f.connect, f.interval = seconds(10*time.Second), seconds(200*time.Millisecond)
	flags := cmd.Flags()
	flags.IntVarP(&f.count, "count", "c", 0, "how many bytes in each session (default: until Ctrl-C)")
	flags.Var(&f.interval, "interval", "time between two bytes")
	flags.StringArrayVar(&f.only, "only", nil, "only these sessions: pty, unobscured, pipe; repeatable")
	flags.StringVar(&f.load, "load", "", "measure beside a transfer, too: upload or download")
	flags.Lookup("load").NoOptDefVal = ping.Upload
	flags.StringVar(&f.ssh, "ssh", "", "path of ssh")
	flags.Var(&f.connect, "connect-timeout", "how long a login may take")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show the summary only")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	f.connection.register(flags)
	return cmd
}

func runPing(ctx context.Context, sys System, f pingFlags, host string) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	d, err := f.connection.Destination(host)
	if err != nil {
		return err
	}
	drain, hard, stop := interruptsSaying(ctx, terminal.NewScreen(sys.Stderr, sys.Getenv), sys, "waiting for the last bytes; press Ctrl-C again to stop at once")
	defer stop()
	client := ping.Client{Connect: time.Duration(f.connect)}
	if client.SSH, err = openssh.FindClient(hard, f.ssh); err != nil {
		return withHint(err, "install openssh-client, or name its path with --ssh")
	}
	if client.Destination, client.Env, err = route.ThroughJumps(hard, f.connection.params(sys), client.SSH, d, client.Connect); err != nil {
		return err
	}
	s := &pinging{pingFlags: f, sys: sys, client: &client, label: d.Label}
	defer s.close()
	if err := s.open(either(hard, drain)); err != nil {
		return interrupted(drain, s.explained(err))
	}
	return interrupted(drain, s.run(drain, hard))
}

func (f pingFlags) check() error {
	switch {
	case f.count < 0:
		return usageError("0 or more; 0 goes on until Ctrl-C", "-c %d", f.count)
	case time.Duration(f.interval) < time.Millisecond:
		return usageError("0.001 or more", "--interval %s", &f.interval)
	case f.load != "" && f.load != ping.Upload && f.load != ping.Download:
		return usageError("--load=upload or --load=download", "--load=%s", f.load)
	}
	for _, identity := range f.connection.Identities {
		if _, err := strconv.ParseFloat(identity, 64); err == nil {
			return usageError("write --interval "+identity+"; -i names a key file, as with ssh", "-i %s: there is no such key file", identity)
		}
	}
	for _, lane := range splitLists(f.only) {
		if !slices.Contains(ping.Lanes(), lane) {
			return usageError("there are "+strings.Join(ping.Lanes(), ", "), "no session is called %s", lane)
		}
	}
	return nil
}

// pinging is one run of ping.
type pinging struct {
	pingFlags
	sys    System
	client *ping.Client
	label  string
	lanes  []*ping.Lane
	load   *ping.Load
	notes  []string
}

// open logs in for each session, at most once a second.
func (s *pinging) open(ctx context.Context) (err error) {
	names := splitLists(s.only)
	if len(names) == 0 {
		names = ping.Lanes()
	}
	if i := slices.Index(names, ping.Unobscured); i >= 0 && !s.client.SSH.Knows(ctx, ping.Obscuring+"=no") {
		names = slices.Delete(names, i, i+1)
		s.notes = append(s.notes, fmt.Sprintf("this ssh (%s) cannot obscure keystroke timing: OpenSSH can since 9.5", s.client.SSH.Version))
	}
	for i, name := range names {
		if i > 0 && !pause(ctx, hostPause) {
			return context.Canceled
		}
		fmt.Fprintf(s.sys.Stderr, "session %d of %d: %s\n", i+1, len(names), name)
		lane, err := s.client.Open(ctx, name)
		if err != nil {
			return err
		}
		s.lanes = append(s.lanes, lane)
	}
	if s.pingFlags.load == "" || !pause(ctx, hostPause) {
		return ctx.Err()
	}
	fmt.Fprintf(s.sys.Stderr, "connection for the transfer\n")
	s.load, err = s.client.OpenLoad(ctx, s.pingFlags.load)
	return err
}

// pause waits; false says that ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *pinging) close() {
	for _, lane := range s.lanes {
		lane.Close()
	}
	if s.load != nil {
		s.load.Close()
	}
}

// explained says what to do about a session that failed.
func (s *pinging) explained(err error) error {
	if _, ok := errors.AsType[*ping.FailedError](err); !ok {
		return err
	}
	line := shell.Line(slices.Concat([]string{"ssh", "-o", "BatchMode=yes"}, s.client.Destination.Options, []string{s.client.Destination.Host, "cat"})...)
	return withHint(fmt.Errorf("%s: %w", s.label, err), "make this work first: "+line)
}

// run sends bytes until drain ends, and waits for the last ones until hard does.
func (s *pinging) run(drain, hard context.Context) error {
	var names []string
	for _, lane := range s.lanes {
		names = append(names, lane.Name)
	}
	if len(names) == 0 {
		return usageError("leave --only out, or name pty or pipe", "there is nothing to measure: %s", strings.Join(s.notes, "; "))
	}
	lines := s.sys.Stdout
	if s.json || s.quiet {
		lines = io.Discard
	}
	live := latency.NewLive(lines, names)
	r := latency.Report{Schema: latency.Schema, Target: s.label, Client: s.client.SSH.Version, Interval: time.Duration(s.interval), Notes: s.notes, Echoes: []ping.Echo{}}
	skipped, failed := ping.Run(either(hard, drain), s.lanes, ping.Options{
		Interval: r.Interval, Count: s.count, Grace: graceOf(r.Interval), Load: s.load, Phase: loadPhase,
	}, func(e ping.Echo) {
		r.Echoes = append(r.Echoes, e)
		live.Add(e)
	})
	if err := live.Rest(); err != nil {
		return err
	}
	r.Skipped, r.Lanes = skipped, ping.Summarize(names, r.Echoes)
	if s.load != nil {
		r.LoadBytesPerS = s.load.Rate()
	}
	return errors.Join(s.show(&r), s.explained(failed))
}

// loadPhase is how long idle and loaded times take in turn.
const loadPhase = 5 * time.Second

// graceOf is how long the last bytes may take.
func graceOf(interval time.Duration) time.Duration { return max(2*time.Second, 2*interval) }

func (s *pinging) show(r *latency.Report) error {
	if s.json {
		return r.JSON(s.sys.Stdout)
	}
	return r.Text(s.sys.Stdout)
}
