package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

// hubCommand are the flags of `sshpace hub`.
type hubCommand struct {
	hubFlags
	connection          connectionFlags
	serving             job.Serving
	maxBytes            byteLimit
	maxAge              seconds
	status, json        bool
	connect, credential string // roles
	page                string // address, "" = none
	valid               seconds
}

// credentialTime is how long a credential is valid unless told otherwise.
const credentialTime = 30 * 24 * time.Hour

func newHubCommand(sys System) *cobra.Command {
	f := hubCommand{maxBytes: byteLimit(job.DefaultLimits.Bytes), maxAge: seconds(job.DefaultLimits.Age), valid: seconds(credentialTime)}
	cmd := page("hub", &cobra.Command{
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), sys) },
	})
	flags := cmd.Flags()
	f.hubFlags.register(flags)
	f.connection.register(flags)
	flags.StringVar(&f.serving.Dir, "dir", "", "directory of what the hub keeps, and of its socket (default hub in ~/.local/state/sshpace)")
	flags.StringVar(&f.serving.Listen, "listen", "", "listen on ADDRESS:PORT, too; with a certificate unless that is loopback")
	flags.StringVar(&f.serving.Certificate, "tls-cert", "", "file of the hub's certificate, for --listen and --page")
	flags.StringVar(&f.serving.Key, "tls-key", "", "file of the key of the certificate")
	flags.Var(&f.maxBytes, "max-bytes", "limit of all that launchers report, which refuses more")
	flags.Var(&f.maxAge, "max-age", "forget jobs after this time")
	flags.IntVar(&f.serving.Limits.Replicas, "replicas", 1, "keep everything on so many servers of the cluster, with --nats")
	flags.StringVar(&f.page, "page", "", "show the jobs in a page for browsers, and metrics for Prometheus, at this `ADDRESS:PORT` (default "+hubPage+"); with a certificate unless that is loopback")
	flags.Lookup("page").NoOptDefVal = hubPage
	flags.BoolVar(&f.status, "status", false, "show what the hub keeps, what waits and which launchers are alive")
	flags.BoolVar(&f.json, "json", false, "print JSON, with --status")
	flags.StringVar(&f.credential, "credential", "", "print a credential: of client, or work:POOL for launchers")
	flags.Var(&f.valid, "for", "time for which the credential is valid")
	flags.StringVar(&f.connect, "connect", "", "connect standard input and output to the hub of this machine: as client, or work:POOL")
	_ = cmd.RegisterFlagCompletionFunc("credential", words(func(context.Context) []string { return []string{string(job.RoleClient), string(job.LauncherRole(""))} }))
	return cmd
}

func (f *hubCommand) run(ctx context.Context, sys System) error {
	if err := sys.needHub(); err != nil {
		return err
	}
	if f.serving.Dir = cmp.Or(f.serving.Dir, hubDir(sys)); f.serving.Dir == "" {
		return withHint(errors.New("no directory for a hub is known"), "set HOME, or give --dir")
	}
	if f.status {
		return f.show(ctx, sys)
	}
	if role := job.Role(cmp.Or(f.credential, f.connect)); role != "" {
		if err := role.Check(); err != nil {
			return err
		}
		if f.connect != "" {
			return sys.Hub.Connect(ctx, f.serving.Dir, role, sys.Stdin, sys.Stdout)
		}
		text, err := sys.Hub.Credential(f.serving.Dir, role, time.Duration(f.valid))
		if err == nil {
			_, err = sys.Stdout.Write(text)
		}
		return err
	}
	return f.serve(ctx, sys)
}

// serve serves until a signal ends it.
func (f *hubCommand) serve(ctx context.Context, sys System) error {
	defer outlive()()
	drain, _, stop := interruptsSaying(ctx, sys, "the hub ends")
	defer stop()
	p := f.serving
	p.Limits.Bytes, p.Limits.Age = int64(f.maxBytes), time.Duration(f.maxAge)
	p.Log = func(text string) { fmt.Fprintln(sys.Stderr, "sshpace: hub: "+text) }
	at := p.Dir
	if f.given() {
		a, err := f.address(sys, f.connection, job.RoleClient)
		if err != nil {
			return err
		}
		if !a.Cluster {
			return usageError("sshpace hub --status shows that of --hub", "--hub names a hub that runs")
		}
		p.Cluster, at = &a, f.nats
	}
	defer fanout.Tune(sys.Getenv, fleet.Command{})()
	server, err := sys.Hub.Serve(drain, p)
	if err != nil && p.Cluster != nil {
		err = unreachable(err)
	}
	if err != nil {
		return interrupted(drain, err)
	}
	defer server.Close()
	if p.Listen != "" {
		at += " and " + p.Listen
	}
	fmt.Fprintln(sys.Stderr, "sshpace: the hub is ready at "+termsafe.Line(at))
	if f.page != "" {
		return interrupted(drain, f.showHub(drain, sys, server))
	}
	<-drain.Done()
	return interrupted(drain, nil)
}

// hubSchema names the layout of --status --json.
const hubSchema = "sshpace.hub/1"

// hubStatus is what --status shows.
type hubStatus struct {
	Schema    string       `json:"schema"`
	Version   string       `json:"nats_version"`
	Streams   []job.Stream `json:"streams"`
	Pools     []hubPool    `json:"pools"`
	Launchers []job.Living `json:"launchers"`
}

type hubPool struct {
	Name      string `json:"name"`
	Waiting   int    `json:"batches_waiting"`
	Taken     int    `json:"batches_taken"`
	Launchers int    `json:"launchers"`
}

// statusTime bounds --status.
const statusTime = 10 * time.Second

// show shows the status of a hub, by default that of this machine.
func (f *hubCommand) show(ctx context.Context, sys System) error {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	at := f.hubFlags
	if !at.given() {
		at.hub = f.serving.Dir
	}
	bus, err := at.bus(ctx, sys, f.connection, job.RoleClient)
	if err != nil {
		return err
	}
	defer bus.Close()
	now, err := bus.Status(ctx)
	if err != nil {
		return err
	}
	var board job.Board
	if err := board.Follow(ctx, bus, true); err != nil {
		return err
	}
	s := statusOf(now, board.Launchers())
	if f.json {
		return termsafe.WriteJSON(sys.Stdout, s, "  ")
	}
	_, err = io.WriteString(sys.Stdout, s.text(terminal.Width(sys.Stdout, sys.Getenv)))
	return err
}

// statusOf joins what a hub and its launchers say.
func statusOf(now job.Status, living []job.Living) hubStatus {
	s := hubStatus{Schema: hubSchema, Version: now.Version, Streams: now.Streams, Pools: []hubPool{}, Launchers: append([]job.Living{}, living...)}
	of := map[string]int{} // launchers of pools
	for _, l := range living {
		of[l.Pool]++
	}
	names := map[string]bool{}
	for _, list := range []map[string]int{now.Waiting, now.Taken, of} {
		for name := range list {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		s.Pools = append(s.Pools, hubPool{name, now.Waiting[name], now.Taken[name], of[name]})
	}
	return s
}

// text shows the status as tables.
func (s hubStatus) text(width int) string {
	streams := text.Table{Columns: []text.Column{{Head: "STREAM"}, {Head: "ENTRIES", Right: true}, {Head: "SIZE", Right: true}, {Head: "LIMIT", Right: true}, {Head: "OLDEST", Right: true}}}
	for _, h := range s.Streams {
		row := []string{h.Name, strconv.FormatUint(h.Messages, 10), unit.Bytes(h.Bytes).String(), unit.Bytes(h.Limit).String(), "-"}
		if !h.Oldest.IsZero() {
			row[4] = unit.Age(time.Since(h.Oldest))
		}
		streams.Rows = append(streams.Rows, row)
	}
	pools := text.Table{Columns: []text.Column{{Head: "POOL"}, {Head: "WAITING", Right: true}, {Head: "TAKEN", Right: true}, {Head: "LAUNCHERS", Right: true}}}
	for _, p := range s.Pools {
		pools.Rows = append(pools.Rows, []string{p.Name, strconv.Itoa(p.Waiting), strconv.Itoa(p.Taken), strconv.Itoa(p.Launchers)})
	}
	launchers := text.Table{Columns: []text.Column{{Head: "LAUNCHER", Fit: text.Cut}, {Head: "POOL"}, {Head: "MACHINE", Fit: text.Cut}, {Head: "UP", Right: true}, {Head: "HOSTS", Right: true}, {Head: "VERSION", Fit: text.Cut}}}
	for _, l := range s.Launchers {
		launchers.Rows = append(launchers.Rows, []string{
			termsafe.Line(l.Name), termsafe.Line(l.Pool), termsafe.Line(l.Host), unit.Age(time.Since(l.Since)), strconv.Itoa(l.Running), termsafe.Line(l.Version),
		})
	}
	shown := streams.Text(width)
	for _, t := range []*text.Table{&pools, &launchers} {
		if len(t.Rows) > 0 {
			shown += "\n" + t.Text(width)
		}
	}
	return shown
}
