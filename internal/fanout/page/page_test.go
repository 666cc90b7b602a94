package page

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout/hub"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// world is a real hub, with who publishes to it.
type world struct {
	t      *testing.T
	client job.Bus
	pools  map[string]job.Bus
	server job.Server
	seqs   map[string]uint64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := hub.NATS{}.Serve(t.Context(), job.Serving{Dir: t.TempDir(), Log: func(text string) { t.Log("hub: " + text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	w := &world{t: t, pools: map[string]job.Bus{}, server: s, seqs: map[string]uint64{}}
	w.client = w.bus(job.RoleClient)
	return w
}

func (w *world) bus(r job.Role) job.Bus {
	w.t.Helper()
	b, err := w.server.Bus(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	return b
}

func (w *world) pool(name string) job.Bus {
	if w.pools[name] == nil {
		w.pools[name] = w.bus(job.LauncherRole(name))
	}
	return w.pools[name]
}

// job publishes a job with batches of its pools.
func (w *world) job(id, text string, pools map[string][]string) {
	w.t.Helper()
	for pool, batches := range pools {
		manifest, _ := json.Marshal(job.Manifest{Schema: job.Schema, ID: id, Time: time.Now(), Expires: time.Now().Add(24 * time.Hour)})
		spec, _ := json.Marshal(job.Spec{Schema: job.Schema, ID: id, Pool: pool, Text: text, Line: text, Batches: batches})
		data, _ := json.Marshal(job.Signed{Manifest: manifest, Spec: spec})
		subject := strings.Join([]string{"job", pool, job.Token(id), "0"}, ".")
		if err := w.client.Put(w.t.Context(), job.Entry{Subject: subject, Header: map[string]string{"Parts": "1"}, Data: data}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// said is the end of a host: what it has written, and its exit status; -1: it goes on, -2: it
// cannot be reached.
type said struct {
	out  string
	exit int
}

// batch reports hosts of a batch, as a launcher does.
func (w *world) batch(pool, id string, number int, set string, of func(i int, h host.Host) said) {
	w.t.Helper()
	hosts, err := (&job.Spec{Batches: []string{set}}).Hosts(0)
	if err != nil {
		w.t.Fatal(err)
	}
	var lines bytes.Buffer
	var started, ended, failed job.Bits
	rec := output.NewRecord(&lines, output.How{})
	rec.Begin(fleet.Start{Time: time.Now(), Hosts: hosts})
	for i, h := range hosts {
		s := of(i, h)
		rec.Started(i)
		started.Add(i)
		if s.out != "" {
			rec.Output(fleet.Event{Index: i, Host: h.String(), Data: []byte(s.out)})
		}
		r := fleet.Result{Index: i, Host: h, Phase: fleet.PhaseExit, Attempts: 1, Elapsed: time.Second, Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: s.exit}}
		if s.exit == -2 {
			r.Phase, r.Outcome = fleet.PhaseConnect, fleet.Outcome{Ran: fleet.RanNo, Class: fleet.Refused, Exit: -1, Err: "connection refused"}
		}
		if s.exit != -1 {
			rec.Done(r, fleet.Summary{})
			ended.Add(i)
		}
		if s.exit != 0 && s.exit != -1 {
			failed.Add(i)
		}
	}
	text := base64.RawStdEncoding.EncodeToString
	subject := strings.Join([]string{"event", pool, job.Token(id), fmt.Sprint(number)}, ".")
	header := map[string]string{"Owner": "bastion-" + pool + "/x7", "Started": text(started), "Ended": text(ended), "Failed": text(failed)}
	seq, err := w.pool(pool).Append(w.t.Context(), job.Entry{Subject: subject, Header: header, Data: lines.Bytes()}, w.seqs[subject], "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.seqs[subject] = seq
}

// alive reports a launcher.
func (w *world) alive(pool, name string, running int) {
	w.t.Helper()
	data, _ := json.Marshal(job.Alive{Instance: name + "/x7", Host: name + ".example.com", Version: "1.0", Since: time.Now().Add(-time.Hour), Running: running})
	if err := w.pool(pool).Put(w.t.Context(), job.Entry{Subject: "alive." + pool + "." + name, Data: data}); err != nil {
		w.t.Fatal(err)
	}
}

// serve shows the hub, and returns the whole address.
func (w *world) serve(p job.Page) *url.URL {
	w.t.Helper()
	p.Bus = w.client
	return serve(w.t, p)
}

func serve(t *testing.T, p job.Page) *url.URL {
	t.Helper()
	if p.Address == "" {
		p.Address = "127.0.0.1:0"
	}
	ready, ended := make(chan string, 1), make(chan error, 1)
	p.Ready = func(address string) { ready <- address }
	go func() { ended <- Serve(t.Context(), p) }()
	select {
	case address := <-ready:
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u
	case err := <-ended:
		t.Fatal(err)
	}
	return nil
}

// browser returns a client that has opened the address.
func browser(t *testing.T, u *url.URL) *http.Client {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	c := &http.Client{Jar: jar}
	if code, text := get(t, c, u.String()); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	return c
}

func get(t *testing.T, c *http.Client, address string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Nobody sees the page without the token, or under a name that is not its own.
func TestAccess(t *testing.T) {
	w := newWorld(t)
	u := w.serve(job.Page{})
	page := *u
	page.RawQuery = ""
	at := func(path string) string { return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String() }
	c := browser(t, u)
	known := c.Jar.Cookies(&page)
	if len(known) != 1 {
		t.Fatalf("cookies %v", known)
	}
	if other := c.Jar.Cookies(&url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/"}); len(other) != 0 {
		t.Errorf("another port of this machine gets %v", other)
	}
	for _, c := range []struct {
		name   string
		url    string
		header []string
		want   int
	}{
		{"the whole address", u.String(), nil, 200},
		{"without the token", page.String(), nil, 403},
		{"a wrong token", page.String() + "?token=x", nil, 403},
		{"without the path", at("/") + "?" + u.RawQuery, nil, 403},
		{"events", page.String() + "events", nil, 403},
		{"a session", page.String(), []string{"Cookie", "sshpace=" + known[0].Value}, 200},
		{"a forged session", page.String(), []string{"Cookie", "sshpace=x" + known[0].Value}, 403},
		{"the wrong host", u.String(), []string{"Host", "evil.example.com"}, 421},
		{"the wrong host of a session", page.String(), []string{"Cookie", "sshpace=" + known[0].Value, "Host", "evil.example.com:80"}, 421},
		{"localhost", page.String(), []string{"Cookie", "sshpace=" + known[0].Value, "Host", "localhost:80"}, 200},
		{"metrics", at("/metrics"), nil, 403},
		{"metrics of a session", at("/metrics"), []string{"Cookie", "sshpace=" + known[0].Value}, 403},
		{"metrics for the token", at("/metrics"), []string{"Authorization", "Bearer " + u.Query().Get("token")}, 200},
		{"nothing there", page.String() + "x", []string{"Cookie", "sshpace=" + known[0].Value}, 404},
		{"no such job", page.String() + "job/x", []string{"Cookie", "sshpace=" + known[0].Value}, 404},
	} {
		jar, _ := cookiejar.New(nil)
		if got, text := get(t, &http.Client{Jar: jar}, c.url, c.header...); got != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, got, text, c.want)
		}
	}
	response, err := c.Get(page.String())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	policy := response.Header.Get("Content-Security-Policy")
	if !regexp.MustCompile(`^default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'; style-src 'nonce-\w+'; script-src 'nonce-\w+'$`).MatchString(policy) {
		t.Errorf("policy %s", policy)
	}
}

// A form stops a job only in the session that it was made for.
func TestStopNeedsItsForm(t *testing.T) {
	w := newWorld(t)
	const id = "20261127T100000Z-abc234"
	w.job(id, "uptime", map[string][]string{"web": {"web[1-5]"}})
	u := w.serve(job.Page{})
	page := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	one, two := browser(t, u), browser(t, u)
	var text string
	waittest.Until(t, "the page shows it", func() bool { _, text = get(t, one, page+"job/"+id); return strings.Contains(text, `name="form"`) })
	form := regexp.MustCompile(`name="form" value="(\w+)"`).FindStringSubmatch(text)[1]
	post := func(c *http.Client, form string, header ...string) int {
		r, _ := http.NewRequest("POST", page+"stop", strings.NewReader(url.Values{"job": {id}, "form": {form}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if len(header) > 0 {
			r.Header.Set(header[0], header[1])
		}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	for name, code := range map[string]int{
		"without a form": post(one, ""), "the form of another session": post(two, form), "another site": post(one, form, "Origin", "http://evil.example.com"),
	} {
		if code != http.StatusForbidden {
			t.Errorf("%s: %d", name, code)
		}
	}
	if _, err := w.client.Last(t.Context(), "stop.web."+id+".1"); err != job.ErrNoEntry {
		t.Errorf("stopped: %v", err)
	}
	if code := post(one, form); code != http.StatusOK {
		t.Errorf("%d", code)
	}
	e, err := w.client.Last(t.Context(), "stop.web."+id+".1")
	if err != nil || !strings.Contains(string(e.Data), `"by":"somebody at the page"`) {
		t.Errorf("%s %v", e.Data, err)
	}
	waittest.Until(t, "the page shows it", func() bool {
		_, text = get(t, one, page+"job/"+id)
		return strings.Contains(text, `class="stage stopped"`)
	})
}
