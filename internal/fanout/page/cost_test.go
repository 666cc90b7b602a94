package page

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
)

// counted is a source that counts what it is asked for.
type counted struct {
	jobs      []job.Overview
	ended     atomic.Int64 // hosts of the first job
	overviews atomic.Int64
	replays   atomic.Int64
}

// jobsOf returns jobs of 20,000 hosts in batches of 100.
func jobsOf(n int) (list []job.Overview) {
	for i := range n {
		o := job.Overview{ID: fmt.Sprintf("20261127T100000Z-%06d", i), Text: "uptime", Start: time.Now(), Stage: job.Running}
		for p := range 4 {
			pool := &job.Pool{Name: fmt.Sprint("p", p)}
			for k := range 50 {
				pool.Batches = append(pool.Batches, job.Batch{Set: fmt.Sprintf("web[%d-%d].example.com", 10_000*p+100*k, 10_000*p+100*k+99), Owner: "bastion", Count: job.Count{Hosts: 100, Started: 80}})
			}
			o.Pools = append(o.Pools, pool)
		}
		list = append(list, o)
	}
	return list
}

func (c *counted) overview(context.Context) overview {
	c.overviews.Add(1)
	c.jobs[0].Pools[0].Batches[0].Ended = int(c.ended.Load())
	jobs := append([]job.Overview(nil), c.jobs...)
	jobs[0].Pools = []*job.Pool{{Name: "p0", Batches: append([]job.Batch(nil), c.jobs[0].Pools[0].Batches...)}}
	return overview{Title: "Jobs", Jobs: jobs}
}

func (c *counted) replay(_ context.Context, _ *job.Overview, sink fleet.Sink) error {
	c.replays.Add(1)
	hosts := make([]host.Host, 20_000)
	for i := range hosts {
		hosts[i].Name = fmt.Sprintf("web%d", i)
	}
	if err := sink.Begin(fleet.Start{Hosts: hosts}); err != nil {
		return err
	}
	for i, h := range hosts {
		r := fleet.Result{Index: i, Host: h, Attempts: 1, Phase: fleet.PhaseExit, Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: i % 2}}
		if err := sink.Output(fleet.Event{Index: i, Host: h.Name, Data: fmt.Appendf(nil, "%d %s\n", i%300, strings.Repeat("x", 50))}); err != nil {
			return err
		}
		if err := sink.Done(r, fleet.Summary{}); err != nil {
			return err
		}
	}
	return nil
}

func (c *counted) stop(context.Context, *job.Overview) error { return nil }

// handled returns the server of a source, and its whole address.
func handled(t *testing.T, c *counted) (*server, *url.URL) {
	t.Helper()
	s := newServer(c, "token")
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	u, err := url.Parse(web.URL + s.path + "?token=token")
	if err != nil {
		t.Fatal(err)
	}
	return s, u
}

// A large fleet costs a page of bounded size, and its output is folded once for all who look.
func TestCost(t *testing.T) {
	t.Parallel()
	c := &counted{jobs: jobsOf(300)}
	s, u := handled(t, c)
	web := browser(t, u)
	page := strings.TrimSuffix(u.String(), "?"+u.RawQuery)
	_, list := get(t, web, page)
	if rows := strings.Count(list, `class="row"`); rows != mostJobs || len(list) > 200_000 || !strings.Contains(list, "100 older jobs not shown here") {
		t.Errorf("%d rows, %d bytes", rows, len(list))
	}
	_, text := get(t, web, page+"job/"+c.jobs[0].ID)
	if blocks := strings.Count(text, `id="group-`); blocks != 100 || !strings.Contains(text, "more not shown here") || len(text) > 200_000 {
		t.Errorf("%d groups, %d bytes", blocks, len(text))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	updates := make(chan string, 1000)
	for range 3 {
		go follow(ctx, t, s, c.jobs[0].ID, updates)
	}
	for range 3 {
		<-updates
	}
	before := c.overviews.Load()
	waittest.Until(t, "the page is looked at again", func() bool { return c.overviews.Load() > before+3 })
	if n := c.replays.Load(); n != 1 {
		t.Errorf("its output was folded %d times, want once", n)
	}
	c.ended.Store(5)
	for text := range updates {
		if strings.Contains(text, "<b>5</b>/5000") {
			break
		}
	}
	if n := c.replays.Load(); n != 2 {
		t.Errorf("its output was folded %d times, want twice", n)
	}
	cancel()
	waittest.Until(t, "nobody watches", func() bool { return s.watching.Load() == 0 })
	before = c.overviews.Load()
	time.Sleep(1500 * time.Millisecond)
	if n := c.overviews.Load(); n != before {
		t.Error("a page that nobody looks at is made")
	}
}

// The work of a list grows with the jobs that are shown, and no faster. Allocations count it.
func TestCostOfList(t *testing.T) {
	list := func(jobs int) float64 {
		s := newServer(&counted{jobs: jobsOf(jobs)}, "token")
		return testing.AllocsPerRun(5, func() { s.parts(t.Context(), "") })
	}
	if few, most := list(20), list(300); most > 12*few || most > 60_000 {
		t.Errorf("the page of %d jobs makes %v allocations, that of 20 %v", mostJobs, most, few)
	}
}

// follow reads the events of a job as a browser does.
func follow(ctx context.Context, t *testing.T, s *server, id string, updates chan<- string) {
	w := &stream{header: http.Header{}, updates: updates}
	r := httptest.NewRequestWithContext(ctx, "GET", s.path+"events?job="+id, nil)
	s.events(w, r)
}

// stream is a browser that reads everything at once.
type stream struct {
	header  http.Header
	updates chan<- string
}

func (w *stream) Header() http.Header              { return w.header }
func (w *stream) WriteHeader(int)                  {}
func (w *stream) Flush()                           {}
func (w *stream) SetWriteDeadline(time.Time) error { return nil }
func (w *stream) Write(p []byte) (int, error)      { w.updates <- string(p); return len(p), nil }

// A browser that does not read delays no other one, and there are only so many.
func TestSlowBrowser(t *testing.T) {
	t.Parallel()
	c := &counted{jobs: jobsOf(200)}
	s, u := handled(t, c)
	web := browser(t, u)
	session := web.Jar.Cookies(u)[0]
	for range 5 {
		slow, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { slow.Close() })
		slow.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(slow, "GET %sevents HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", s.path, u.Host, session)
	}
	waittest.Until(t, "five watch", func() bool { return s.watching.Load() == 5 })
	answer, err := web.Get(strings.TrimSuffix(u.String(), "?"+u.RawQuery) + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	read := make(chan string)
	go func() {
		buf := make([]byte, 1<<20)
		for text := ""; ; {
			n, err := answer.Body.Read(buf)
			if text += string(buf[:n]); err != nil {
				return
			}
			if strings.Contains(text, "<b>7</b>/5000") {
				read <- text
				return
			}
		}
	}()
	c.ended.Store(7)
	select {
	case <-read:
	case <-time.After(20 * time.Second):
		t.Error("slow browsers delay others")
	}
	s.watching.Add(watchers - 6)
	if code, _ := get(t, web, strings.TrimSuffix(u.String(), "?"+u.RawQuery)+"events"); code != 503 {
		t.Errorf("one browser too many: %d", code)
	}
}
