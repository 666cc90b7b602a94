package page

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
)

// source is where jobs come from.
type source interface {
	overview(ctx context.Context) overview
	// replay reports what is kept of a job to a sink.
	replay(ctx context.Context, o *job.Overview, sink fleet.Sink) error
	stop(ctx context.Context, o *job.Overview) error
}

// overview is all that the page shows but for what hosts have said.
type overview struct {
	Title     string
	Jobs      []job.Overview // the newest first
	Hub       *job.Status    // nil: there is none
	Launchers []job.Living
	Trouble   string // why all this may be old
}

// What a page shows at most, in number and in bytes.
const (
	mostJobs    = 200
	mostBatches = 500 // of a pool
	mostGroups  = 100 // of hosts with the same output
	mostOutput  = 16 << 10
	mostText    = 4 << 10
)

// view is the data of the templates.
type view struct {
	overview
	Job         *job.Overview
	Fold        *fold
	Alive       map[string]int // launchers of pools
	Base        string         // of links
	Now         time.Time
	Nonce, Form string
	Style       template.CSS
	Script      template.JS
}

func (s *server) view(ctx context.Context, id string) view {
	v := view{overview: s.source.overview(ctx), Base: s.path, Now: time.Now()}
	if v.Job = find(v.Jobs, id); v.Job != nil {
		v.Fold = s.fold(ctx, v.Job)
	}
	v.Alive = v.alive()
	return v
}

func find(jobs []job.Overview, id string) *job.Overview {
	i := slices.IndexFunc(jobs, func(o job.Overview) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &jobs[i]
}

// alive counts the launchers of pools.
func (o overview) alive() map[string]int {
	pools := map[string]int{}
	for _, l := range o.Launchers {
		pools[l.Pool]++
	}
	return pools
}

// Stops reports whether there is something to stop.
func (v view) Stops() bool {
	return v.Job != nil && (v.Job.Stage == job.Running || v.Job.Stage == job.Waiting)
}

// Parts returns the names of the parts of the page that change.
func (v view) Parts() []string {
	if v.Job != nil {
		return []string{"facts", "progress", "hosts", "output"}
	}
	return []string{"launchers", "jobs"}
}

// Part makes a part of the page.
func (v view) Part(name string) (template.HTML, error) {
	var text strings.Builder
	err := templates().ExecuteTemplate(&text, name, v)
	return template.HTML(text.String()), err
}

// parts makes all of them.
func (s *server) parts(ctx context.Context, id string) map[string]string {
	v, parts := s.view(ctx, id), map[string]string{}
	if id != "" && v.Job == nil {
		return parts
	}
	for _, name := range v.Parts() {
		if text, err := v.Part(name); err == nil {
			parts[name] = string(text)
		}
	}
	return parts
}

// fold is what is kept of a job: its hosts by their states, and by what they have said. It is made
// once for all who look, as long as no more hosts end.
type fold struct {
	Sets    []set
	Groups  []*group
	Ends    group
	More    int // groups that are not shown
	Trouble string
}

// set is a set of hosts with the same state.
type set struct {
	State string
	Hosts int
	Names string
}

// group is the beginning of what a group of hosts has said.
type group struct {
	Title string
	text  []byte
	Left  int // bytes that are not shown
}

func (g *group) Write(p []byte) (int, error) {
	kept := min(len(p), mostOutput-len(g.text))
	g.text, g.Left = append(g.text, p[:kept]...), g.Left+len(p)-kept
	return len(p), nil
}

// Text returns the text, without a part of a character at its end.
func (g *group) Text() string { return strings.ToValidUTF8(string(g.text), "") }

// folding is a fold, and how far the job was when it was made.
type folding struct {
	mu   sync.Mutex
	of   job.Count
	fold *fold
}

// mostFolds is how many jobs are kept folded.
const mostFolds = 8

func (s *server) fold(ctx context.Context, o *job.Overview) *fold {
	s.mu.Lock()
	f := s.folds[o.ID]
	if f == nil {
		if len(s.folds) == mostFolds {
			clear(s.folds)
		}
		f = &folding{}
		s.folds[o.ID] = f
	}
	s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := o.Count(); f.fold == nil || f.of != n || f.fold.Trouble != "" {
		f.of, f.fold = n, s.folded(ctx, o)
	}
	return f.fold
}

// folded replays a job into the view of -b.
func (s *server) folded(ctx context.Context, o *job.Overview) *fold {
	f := &fold{}
	show := output.View{Gather: true, Quiet: true, Color: "never", Groups: func(title string) io.Writer {
		if len(f.Groups) == mostGroups {
			f.More++
			return io.Discard
		}
		f.Groups = append(f.Groups, &group{Title: title})
		return f.Groups[len(f.Groups)-1]
	}}
	sink, err := show.Sink(output.Streams{Out: &f.Ends, Err: &f.Ends, Getenv: func(string) string { return "" }}, nil)
	if err == nil {
		g := gathering{Sink: sink}
		err = cmp.Or(s.source.replay(ctx, o, &g), sink.End(fleet.Summary{}))
		f.Sets = g.sets()
	}
	if err != nil {
		f.Trouble = err.Error()
	}
	return f
}

// gathering notes the states of hosts beside a view, whose end comes later.
type gathering struct {
	fleet.Sink
	hosts  []host.Host
	states []string
}

// Those of hosts without a result.
const waiting, running = "waiting", "running"

func (g *gathering) Begin(s fleet.Start) error {
	g.hosts, g.states = s.Hosts, slices.Repeat([]string{waiting}, len(s.Hosts))
	return g.Sink.Begin(s)
}

func (g *gathering) Started(index int) error {
	g.states[index] = running
	return nil
}

func (g *gathering) Done(r fleet.Result, so fleet.Summary) error {
	g.states[r.Index] = r.Set()
	return g.Sink.Done(r, so)
}

func (*gathering) End(fleet.Summary) error { return nil }

// sets returns the hosts of each state, those first that may want something.
func (g *gathering) sets() (sets []set) {
	names := map[string][]string{}
	for i, h := range g.hosts {
		names[g.states[i]] = append(names[g.states[i]], h.String())
	}
	for _, state := range []string{"failed", "unreachable", "unknown", "not-started", running, waiting, "ok"} {
		if hosts := names[state]; len(hosts) > 0 {
			sets = append(sets, set{state, len(hosts), hostset.Fold(hosts)})
		}
	}
	return sets
}

// safe returns text of anybody on one line, without controls, and cut.
func safe(text string) string {
	text = termsafe.OneLine(text)
	if more := len(text) - mostText; more > 0 {
		return fmt.Sprintf("%s… (%d bytes more)", strings.ToValidUTF8(text[:mostText], ""), more)
	}
	return text
}

// bar has hosts, and the parts of a bar in thousandths of its length.
type bar struct {
	job.Count
	OK, Runs, Waits      int
	Green, Red, Blue, To int
}

func barOf(n job.Count) bar {
	part := func(hosts int) int { return 1000 * hosts / max(1, n.Hosts) }
	b := bar{Count: n, OK: n.Ended - n.Failed, Runs: max(0, n.Started-n.Ended), Waits: n.Hosts - max(n.Started, n.Ended)}
	b.Green, b.Red = part(b.OK), part(n.Failed)
	if n.Failed > 0 && b.Red < 8 { // seen, however few they are
		b.Red, b.Green = 8, min(b.Green, 992)
	}
	b.To = b.Green + b.Red
	b.Blue = min(part(b.Runs), 1000-b.To)
	return b
}

// Ago prints how long ago something was, in steps, so that it does not change all the time.
func (v view) Ago(t time.Time) string {
	if d := v.Now.Sub(t).Truncate(20 * time.Second); d > 0 {
		return unit.Age(d) + " ago"
	}
	return "now"
}
