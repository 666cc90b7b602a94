package page

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/output"
)

// certificate makes a certificate for a name that signs itself, and its key.
func certificate(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &form, &form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Another address than loopback needs TLS; then the name of the host is that of the certificate,
// and the cookie goes over TLS only.
func TestPageOverTLS(t *testing.T) {
	if err := Serve(t.Context(), job.Page{Address: "0.0.0.0:0"}); err == nil || !strings.Contains(err.Error(), "readable on the network") {
		t.Errorf("without TLS: %v", err)
	}
	cert, key := certificate(t, "hub.example.com")
	u := serve(t, job.Page{Runs: history.New(t.TempDir()), Address: "0.0.0.0:0", Cert: cert, Key: key})
	if u.Scheme != "https" {
		t.Errorf("%s", u)
	}
	u.Host = "127.0.0.1:" + u.Port()
	config := &tls.Config{InsecureSkipVerify: true, ServerName: "hub.example.com"}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if code, text := get(t, c, u.String()); code != http.StatusMisdirectedRequest {
		t.Errorf("under its number: %d %s", code, text)
	}
	r, _ := http.NewRequest("GET", u.String(), nil)
	r.Host = "hub.example.com"
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	cookies := answer.Cookies()
	if len(cookies) != 1 || !cookies[0].Secure || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || answer.StatusCode != http.StatusSeeOther {
		t.Errorf("%d, cookies %v", answer.StatusCode, cookies)
	}
	if err := Serve(t.Context(), job.Page{Address: "127.0.0.1:0", Cert: key, Key: cert}); err == nil {
		t.Error("a certificate that is none is accepted")
	}
}

// Whoever connects without end gets a bounded number of connections, and then others get one again.
func TestManyConnections(t *testing.T) {
	u := serve(t, job.Page{Runs: history.New(t.TempDir())})
	var all []net.Conn
	for range mostConnections {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	answers := func() bool {
		jar, _ := cookiejar.New(nil)
		transport := &http.Transport{DisableKeepAlives: true}
		answer, err := (&http.Client{Jar: jar, Transport: transport}).Get(u.String())
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}
	waittest.Until(t, "there are too many", func() bool { return !answers() })
	for _, c := range all {
		c.Close()
	}
	waittest.Until(t, "there is room", answers)
}

// A token in a file stays the same, and nobody else can read it.
func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	p := job.Page{Runs: history.New(t.TempDir()), TokenFile: file}
	first, second := serve(t, p), serve(t, p)
	if first.RawQuery != second.RawQuery || first.Path != second.Path {
		t.Errorf("%s, then %s", first, second)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := os.WriteFile(file, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), job.Page{Runs: p.Runs, TokenFile: file, Address: "127.0.0.1:0"}); err == nil {
		t.Error("a token that can be guessed is accepted")
	}
}

// Detached runs have the same page.
func TestRuns(t *testing.T) {
	store := history.New(t.TempDir())
	u := serve(t, job.Page{Runs: store})
	page := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	c := browser(t, u)
	if _, text := get(t, c, page); !strings.Contains(text, "sshpace run --detach starts one") || strings.Contains(text, "Launchers") {
		t.Errorf("%s", text)
	}
	hosts := []host.Host{{Name: "web1"}, {Name: "web2"}, {Name: "web3"}}
	rec, err := history.Keep(store, output.How{Kept: 1 << 20, Detached: &output.Process{PID: 1, Machine: "x"}}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	rec.Begin(fleet.Start{ID: rec.ID, Time: time.Now(), Command: "uname -r", Hosts: hosts})
	says := func(path string, words ...string) {
		t.Helper()
		var text string
		for _, word := range words {
			if !waittest.Comes(func() bool { _, text = get(t, c, page+path); return strings.Contains(text, word) }) {
				t.Errorf("%q is not in %s", word, text)
			}
		}
	}
	says("", "uname -r", `class="stage running"`, "<b>0</b>/3")
	for i, h := range hosts[:2] {
		rec.Started(i)
		rec.Output(fleet.Event{Index: i, Host: h.Name, Data: []byte("6.1.0\n")})
		rec.Done(fleet.Result{Index: i, Host: h, Attempts: 1, Phase: fleet.PhaseExit, Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: i}}, fleet.Summary{})
	}
	says("job/"+rec.ID, "<b>2</b>/3", "1 failed", "web[1-2] (2)", "6.1.0", "web2 (1) =: exit 1", `<span class="state waiting">waiting</span> 1`)
	if err := rec.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	says("job/"+rec.ID, `class="stage killed"`)
}

// The text for Prometheus is of its format.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	const id = "20261127T100000Z-abc234"
	w.job(id, "uptime", map[string][]string{"web": {"web[1-5]"}})
	w.batch("web", id, 0, "web[1-5]", func(i int, _ host.Host) said { return said{"", []int{0, 0, 3, -2, -1}[i]} })
	w.alive("web", "bastion", 1)
	if err := w.client.Put(t.Context(), job.Entry{Subject: "batch.db." + job.Token(id) + ".0"}); err != nil {
		t.Fatal(err)
	}
	u := w.serve(job.Page{})
	jar, _ := cookiejar.New(nil)
	var text string
	for _, want := range []string{
		`sshpace_jobs{state="running"} 1`, `sshpace_jobs{state="done"} 0`, `sshpace_hosts{result="ok"} 2`, `sshpace_hosts{result="failed"} 2`, `sshpace_hosts{result="running"} 1`,
		`sshpace_launchers{pool="web"} 1`, `sshpace_batches_waiting{pool="db"} 1`, `sshpace_stream_limit_bytes{stream="EVENTS"} `,
	} {
		waittest.Until(t, want, func() bool {
			_, text = get(t, &http.Client{Jar: jar}, u.Scheme+"://"+u.Host+"/metrics", "Authorization", "Bearer "+u.Query().Get("token"))
			return strings.Contains(text, want)
		})
	}
	checkMetrics(t, text)
}

// checkMetrics checks the text format of Prometheus, version 0.0.4: each family has its help and
// its type once, before its samples, and no sample comes twice.
func checkMetrics(t *testing.T, text string) {
	t.Helper()
	if !strings.HasSuffix(text, "\n") {
		t.Error("the last line has no end")
	}
	help := regexp.MustCompile(`^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) [^\n]+$`)
	kind := regexp.MustCompile(`^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) gauge$`)
	sample := regexp.MustCompile(`^(([a-zA-Z_:][a-zA-Z0-9_:]*)\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"\}) [0-9]+(\.[0-9]+)?$`)
	seen, helped, now := map[string]bool{}, "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := help.FindStringSubmatch(line); m != nil && !seen[m[1]] {
			helped, seen[m[1]] = m[1], true
		} else if m := kind.FindStringSubmatch(line); m != nil && m[1] == helped {
			now = m[1]
		} else if m := sample.FindStringSubmatch(line); m != nil && m[2] == now && !seen[m[1]] {
			seen[m[1]] = true
		} else {
			t.Errorf("not of the format: %q", line)
		}
	}
}

// A name of a pool cannot leave its label.
func TestGaugeEscapes(t *testing.T) {
	var text strings.Builder
	gauge(&text, "sshpace_x", "X.", "pool", map[string]int{"a\"b\\c\nd\xff": 1, "e": 2})
	checkMetrics(t, text.String())
}
