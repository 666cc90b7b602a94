package job_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/output"
)

// told is a hub whose launchers have said all.
type told struct {
	job.Bus
	events []job.Entry
}

func (*told) Put(context.Context, job.Entry) error { return nil }
func (b *told) Follow(ctx context.Context, pattern string, _ job.FollowOptions) iter.Seq2[job.Entry, error] {
	return func(yield func(job.Entry, error) bool) {
		for _, e := range b.events {
			if strings.HasPrefix(pattern, "event.") && !yield(e, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(job.Entry{}, context.Cause(ctx))
	}
}

// BenchmarkClient is what a host costs a client: its lines are read, shown and recorded.
func BenchmarkClient(b *testing.B) {
	var hosts []host.Host
	for i := range b.N {
		hosts = append(hosts, host.Host{Name: fmt.Sprintf("10.0.%d.%d", i/250, i%250)})
	}
	bus := &told{}
	plan := job.Plan{
		Spec: job.Spec{ID: jobID, Line: "uptime"}, Hosts: hosts, Sizes: []int{len(hosts)}, Expires: time.Hour,
		Pool: func(host.Host) string { return "web" },
		Sign: func(context.Context, []byte) ([]byte, error) { return nil, nil },
	}
	client, err := job.Publish(b.Context(), bus, plan, job.People{Notice: func(string) {}})
	if err != nil {
		b.Fatal(err)
	}
	client.Close()
	batches, _, _ := job.Cut(hosts, plan.Pool, plan.Sizes)
	for n := range batches["web"] {
		spec := job.Spec{Batches: batches["web"]}
		members, _ := spec.Hosts(n)
		bus.events = append(bus.events, report(n, members)...)
	}
	if client, err = job.Publish(b.Context(), bus, plan, job.People{Notice: func(string) {}}); err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	recorder, err := history.Keep(history.New(b.TempDir()), output.How{Kept: 256 << 20}, os.Stderr)
	if err != nil {
		b.Fatal(err)
	}
	defer recorder.Close(b.Context())
	view := output.NewRecord(null, output.How{})
	b.ReportAllocs()
	b.ResetTimer()
	so, err := fanout.Run(b.Context(), fanout.Params{RetryFor: -1, Resources: &fanout.Resources{}}, hosts, fleet.Command{}, client, client.Sink(view, recorder))
	if err != nil || so.OK != b.N {
		b.Fatalf("%+v, %v", so, err)
	}
}

// report returns the entries about a batch: starts, a line of output each, ends.
func report(number int, hosts []host.Host) (entries []job.Entry) {
	var lines bytes.Buffer
	sink := output.NewRecord(&lines, output.How{})
	state := job.State{Owner: "east/1"}
	sink.Begin(fleet.Start{Time: began, Hosts: hosts})
	entry := func() {
		entries = append(entries, job.Entry{Subject: job.Subject("event", "web", jobID, number), Header: state.Header(), Data: bytes.Clone(lines.Bytes())})
		lines.Reset()
	}
	for at := range hosts {
		state.Started.Add(at)
		sink.Started(at)
		if at%5 == 4 {
			entry()
		}
	}
	for at, h := range hosts {
		sink.Output(fleet.Event{Index: at, Data: []byte(" 15:04:05 up 3 days, load average: 0.01\n"), Time: began})
		r := fleet.Result{Index: at, Host: h, Attempts: 1, Phase: fleet.PhaseExit, Start: began, Elapsed: time.Second,
			Outcome: fleet.Outcome{Addr: h.Name + ":22", Engine: "native", Launcher: "east", Ran: fleet.RanYes}}
		for p := fleet.PhaseDNS; p < fleet.PhaseExit; p++ {
			r.Spent[p] = time.Millisecond
		}
		sink.Done(r, fleet.Summary{})
		state.Ended.Add(at)
		if at%5 == 4 {
			entry()
		}
	}
	entry()
	return entries
}
