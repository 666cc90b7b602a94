// Package page shows jobs in a browser, while they go on: those of a hub, or the detached runs of
// this machine. It needs nothing from a network, works without scripts, and changes nothing but
// that it stops jobs.
//
// Other users of this machine reach the ports of loopback, and any page that the browser shows may
// ask it for ours. So the address has a token, which becomes a cookie; the name of the host is
// checked, forms have a token of the session, and all that hosts have sent is text. The path of the
// page is secret as well, since browsers show cookies to all ports of a machine.
package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/unit"
	"sshpace/internal/fanout/job"
)

//go:embed page.html
var pageHTML string

//go:embed style.css
var styleCSS string

//go:embed live.js
var liveJS string

// Serve shows the page until ctx ends.
func Serve(ctx context.Context, p job.Page) error {
	token, err := tokenOf(p.TokenFile)
	if err != nil {
		return err
	}
	s := newServer(&runs{store: p.Runs}, token)
	listener, scheme, err := s.listen(ctx, &p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.Bus != nil {
		h := &hubJobs{bus: p.Bus}
		s.source = h
		go h.follow(ctx)
	}
	web := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), ConnState: s.connections, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { web.Close() })()
	p.Ready(scheme + "://" + listener.Addr().String() + s.path + "?token=" + token)
	if err := web.Serve(listener); ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// mostConnections leaves descriptors for the hub in the same process, whoever connects.
const mostConnections = 200

// connections ends those that are too many.
func (s *server) connections(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if s.open.Add(1) > mostConnections {
			c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
	}
}

func newServer(from source, token string) *server {
	s := &server{source: from, secret: []byte(token), named: host.Loopback, folds: map[string]*folding{}}
	s.path = "/" + s.sign("path", "")[:16] + "/"
	return s
}

// listen opens the port, and learns under which names the page is reached.
func (s *server) listen(ctx context.Context, p *job.Page) (listener net.Listener, scheme string, err error) {
	address, err := net.ResolveTCPAddr("tcp", p.Address)
	switch {
	case err != nil:
		return nil, "", &fault.Error{Err: err, Hint: "such as 127.0.0.1:7722", Code: fault.Misuse}
	case p.Cert == "" && !address.IP.IsLoopback():
		return nil, "", fault.Usage("give --tls-cert and --tls-key, or an address of loopback, such as 127.0.0.1:7722, and reach it by ssh -L", "the page on %s would be readable on the network", p.Address)
	}
	var config net.ListenConfig
	if listener, err = config.Listen(ctx, "tcp", address.String()); err != nil {
		return nil, "", fault.WithHint(err, "name another address, such as --page=127.0.0.1:0 for any free port")
	}
	if p.Cert == "" {
		return listener, "http", nil
	}
	pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, "", errors.Join(fault.WithHint(err, "see --tls-cert and --tls-key"), listener.Close())
	}
	s.secure, s.named = true, func(name string) bool { return pair.Leaf.VerifyHostname(name) == nil }
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), "https", nil
}

// tokenOf returns the token in a file, which is made if it is missing.
func tokenOf(file string) (string, error) {
	if file == "" {
		return rand.Text(), nil
	}
	token, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		token = []byte(rand.Text() + "\n")
		err = os.WriteFile(file, token, 0o600)
	}
	if err == nil && len(token) < 26 {
		err = &fault.Error{What: file + " has no token of a page", Hint: "remove it"}
	}
	return strings.TrimSpace(string(token)), err
}

// server answers browsers.
type server struct {
	source source
	secret []byte // the token
	path   string // of the page, with a slash at both ends
	secure bool   // over TLS
	named  func(host string) bool

	open, watching atomic.Int64 // connections, and those that get events

	mu    sync.Mutex
	folds map[string]*folding // by the ID of a job
}

// sign returns a text that only this server can make, about a word.
func (s *server) sign(use, word string) string {
	sum := hmac.New(sha256.New, s.secret)
	io.WriteString(sum, use+"\x00"+word)
	return hex.EncodeToString(sum.Sum(nil))
}

func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

const cookie = "sshpace"

// ServeHTTP answers whoever may see the page.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	name := (&url.URL{Host: r.Host}).Hostname()
	what, under := strings.CutPrefix(r.URL.Path, s.path)
	switch {
	case !s.named(name):
		http.Error(w, "This is not the address of the page: open the one that sshpace has printed.", http.StatusMisdirectedRequest)
	case r.URL.Path == "/metrics" && same(r.Header.Get("Authorization"), "Bearer "+string(s.secret)):
		s.metrics(w, r)
	case !under || r.URL.Path == "/metrics":
		http.Error(w, "Open the whole address that sshpace has printed; it has a token.", http.StatusForbidden)
	case r.Method == http.MethodGet && same(r.FormValue("token"), string(s.secret)):
		session := rand.Text()
		http.SetCookie(w, &http.Cookie{
			Name: cookie, Value: session + s.sign("session", session), Path: s.path, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteStrictMode,
		})
		http.Redirect(w, r, s.path, http.StatusSeeOther)
	default:
		session := s.session(r)
		if session == "" {
			http.Error(w, "Open the whole address that sshpace has printed; it has a token.", http.StatusForbidden)
			return
		}
		s.answer(w, r, what, session)
	}
}

// session returns the session of a request, "" for none of ours.
func (s *server) session(r *http.Request) string {
	for _, c := range r.CookiesNamed(cookie) {
		if n := len(c.Value) - hex.EncodedLen(sha256.Size); n > 0 && same(c.Value[n:], s.sign("session", c.Value[:n])) {
			return c.Value[:n]
		}
	}
	return ""
}

// answer answers a request of a session.
func (s *server) answer(w http.ResponseWriter, r *http.Request, what, session string) {
	id, isJob := strings.CutPrefix(what, "job/")
	switch {
	case what == "stop" && r.Method == http.MethodPost:
		s.stop(w, r, session)
	case r.Method != http.MethodGet:
		http.Error(w, "", http.StatusMethodNotAllowed)
	case what == "events":
		s.events(w, r)
	case what == "" || isJob:
		s.page(w, r, id, session)
	default:
		http.NotFound(w, r)
	}
}

// stop stops a job, if the form is one of this session.
func (s *server) stop(w http.ResponseWriter, r *http.Request, session string) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	o := find(s.source.overview(r.Context()).Jobs, r.PostFormValue("job"))
	if http.NewCrossOriginProtection().Check(r) != nil || !same(r.PostFormValue("form"), s.sign("form", session)) {
		http.Error(w, "This is not a form of this session: load the page again.", http.StatusForbidden)
		return
	}
	if o == nil {
		http.NotFound(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	if err := s.source.stop(ctx, o); err != nil && ctx.Err() == nil { // it may take long to end
		http.Error(w, "The job was not stopped: "+safe(err.Error()), http.StatusBadGateway)
		return
	}
	http.Redirect(w, r, s.path+"job/"+o.ID, http.StatusSeeOther)
}

// page sends a whole page: all jobs, or one.
func (s *server) page(w http.ResponseWriter, r *http.Request, id, session string) {
	v := s.view(r.Context(), id)
	if v.Job == nil && id != "" {
		http.NotFound(w, r)
		return
	}
	v.Nonce, v.Form = rand.Text(), s.sign("form", session)
	v.Style, v.Script = template.CSS(styleCSS), template.JS(liveJS)
	w.Header().Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; connect-src 'self'; "+
		"style-src 'nonce-"+v.Nonce+"'; script-src 'nonce-"+v.Nonce+"'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = templates().Execute(w, v) // the browser may have left
}

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"safe": safe, "count": unit.Count, "bar": barOf,
		"clock": func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
		"size":  func(n uint64) string { return unit.Bytes(n).String() },
		"limit": func(n int64) string { return unit.Bytes(n).String() },
		"next":  func(i int) int { return i + 1 },
		"less":  func(a, b int) int { return a - b },
		"jobs":  func(list []job.Overview) []job.Overview { return list[:min(len(list), mostJobs)] },
		"first": func(list []job.Batch) []job.Batch { return list[:min(len(list), mostBatches)] },
	}).Parse(pageHTML))
})
