// Package survey logs in to many hosts once, at the speed of a run, and records the phases of each
// login, and the version and algorithms of each server. It judges nothing.
package survey

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/record"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/reach"
)

// Judge explains logins. Its methods are called concurrently.
type Judge interface {
	// Ask returns a script for the host's sh whose answers explain a slow login; "" for none. Hear
	// reads them.
	Ask(h *record.Host) string
	Hear(h *record.Host, answers io.Reader)
	// Explain fills in the causes, once all have ended.
	Explain(all []*record.Host)
}

// Params of a survey.
type Params struct {
	Judge    Judge
	Fanout   fanout.Params
	Progress func(done, total int)
	Sink     record.Sink // of the hosts, in their order
}

// Run logs in to the hosts. The error is ctx's cause, the interrupt of Drain, or the Sink's.
func Run(ctx context.Context, p Params, hosts []host.Host, e *reach.Executor) error {
	s := &surveyor{Executor: e, Params: p, logins: make([]login, len(hosts)), own: &load{}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go s.own.watch(watching)
	e.Warm(ctx, hosts)
	_, err := fanout.Run(ctx, p.Fanout, hosts, marked, s, s)
	var all []*record.Host
	for i := range s.logins {
		if h := &s.logins[i].Host; h.Attempts > 0 {
			all = append(all, h)
		}
	}
	p.Judge.Explain(all)
	for _, h := range all {
		err = cmp.Or(err, p.Sink(h))
	}
	return err
}

// mark is the output of the command. If the host sends anything else, another command ran in its
// place (sshd_config(5) ForceCommand), and must not run a second time.
const mark = "sshpace-survey"

var marked = fleet.Command{Line: "echo " + mark}

// surveyor makes the logins, and collects how they ended.
type surveyor struct {
	*reach.Executor
	fleet.Nothing
	Params
	logins []login
	own    *load
}

// login is one login.
type login struct {
	record.Host
	seen   dial.Seen
	output strings.Builder
}

// Execute logs in to one host.
func (s *surveyor) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	l := &s.logins[a.Index()]
	*l = login{Host: record.Host{Name: h.String(), Start: time.Now().UTC()}}
	l.seen.Ask = func() string {
		if l.fill(s.own, time.Time{}); strings.TrimSpace(l.output.String()) != mark {
			return ""
		}
		return s.Judge.Ask(&l.Host)
	}
	l.seen.Hear = func(r io.Reader) { s.Judge.Hear(&l.Host, r) }
	o := s.Watch(ctx, h, cmd, a, &l.seen)
	l.fill(s.own, time.Now())
	return o
}

// Output keeps enough of the command's output to find the mark.
func (s *surveyor) Output(e fleet.Event) error {
	if l := &s.logins[e.Index]; e.Stream == fleet.Stdout && l.output.Len() < 2*len(mark) {
		l.output.Write(e.Data)
	}
	return nil
}

// Done records the end of a host.
func (s *surveyor) Done(r fleet.Result, so fleet.Summary) error {
	s.Progress(so.Total(), len(s.logins))
	if r.Status() == fleet.NotStarted {
		return nil
	}
	l := &s.logins[r.Index]
	h := &l.Host
	h.Name, h.Attempts, h.WaitedNS = r.Host.String(), r.Attempts, r.Waited
	if r.Exit >= 0 {
		h.Exit = &r.Exit
	}
	if r.Class != fleet.NoFailure {
		h.Class, h.Failure = r.Class.String(), r.Err
	}
	return nil
}

// fill records the login as far as it has come. A time other than zero ends the phase in progress.
func (l *login) fill(own *load, now time.Time) {
	seen := &l.seen
	h := &l.Host
	h.Via, h.RTTNS = seen.Via, seen.RoundTrip
	if h.Banner = seen.Greeting.Version; h.Banner == "" {
		h.Banner = string(seen.Greeting.Text)
	}
	t, got := &seen.Theirs, &seen.Got
	h.Offer = alg.Offer{Ciphers: t.CipherUp, MACs: t.MACUp, Kex: t.Kex, HostKeys: t.HostKey}
	h.Suite = alg.NewSuite(got.Write.Cipher, got.Write.MAC, got.KeyExchange)
	h.Suite.HostKey = got.HostKey
	l.phases(own, now)
}
