package keep

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/journal"
)

// Terminal asks a person, and shows texts.
type Terminal struct {
	Ask  func(ctx context.Context, text string, secret bool) (string, error)
	Show func(text string)
}

// Asker asks the person at the present terminal: that of the process, or that of another one which
// asks for a refresh.
type Asker struct {
	mu  sync.Mutex
	now *Terminal // nil: there is none
}

// Use changes the terminal; nil is none.
func (a *Asker) Use(t *Terminal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = t
}

// Away reports whether there is no terminal.
func (a *Asker) Away() bool { return a.terminal() == nil }

func (a *Asker) terminal() *Terminal {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// Ask asks; io.EOF is no answer.
func (a *Asker) Ask(ctx context.Context, text string, secret bool) (string, error) {
	if t := a.terminal(); t != nil {
		return t.Ask(ctx, text, secret)
	}
	return "", io.EOF
}

// Show shows a text.
func (a *Asker) Show(text string) {
	if t := a.terminal(); t != nil {
		t.Show(text)
	}
}

// question is a line among the records of a refresh. A string of JSON answers it, null means that
// there is no answer; a question with Shown has none.
type question struct {
	Type   string `json:"type"` // ask
	Text   string `json:"text"`
	Secret bool   `json:"secret,omitempty"`
	Shown  bool   `json:"shown,omitempty"` // it is only a text
}

const typeAsk = "ask"

// refresh logs in anew, and writes the records of that. An old connection ends with its last
// session.
func (k *Keeper) refresh(r *request, conn net.Conn, in *bufio.Reader) {
	k.refreshing.Lock()
	defer k.refreshing.Unlock()
	_ = conn.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(k.life)
	defer cancel()
	answers := make(chan *string)
	go func() {
		defer cancel() // the client has gone
		for d := json.NewDecoder(in); ; {
			var answer *string
			if d.Decode(&answer) != nil {
				return
			}
			select {
			case answers <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	say := func(q question) { q.Type = typeAsk; _ = json.NewEncoder(conn).Encode(q) } // a line is written as a whole
	k.Asker.Use(&Terminal{
		Ask: func(asking context.Context, text string, secret bool) (string, error) {
			say(question{Text: text, Secret: secret})
			select {
			case answer := <-answers:
				if answer == nil {
					return "", io.EOF
				}
				return *answer, nil
			case <-asking.Done():
				return "", context.Cause(asking)
			case <-ctx.Done():
				return "", io.EOF
			}
		},
		Show: func(text string) { say(question{Text: text, Shown: true}) },
	})
	defer k.Asker.Use(nil)
	k.logInAnew(ctx, r, output.NewRecord(conn, output.How{}))
}

func (k *Keeper) logInAnew(ctx context.Context, r *request, sink fleet.Sink) {
	var hosts []host.Host
	k.mu.Lock()
	for name, p := range k.places {
		if r.about(name) && p.state != "" {
			hosts = append(hosts, p.host)
		}
	}
	k.mu.Unlock()
	sortHosts(hosts, host.Host.String)
	defer k.Reach.Forget()
	_, _ = fanout.Run(ctx, k.Fanout, hosts, Command, k, output.Tee{&returns{of: k}, sink})
}

// Refresh logs in anew to hosts, to all if names is empty, and shows that as a run. Questions are
// asked on the terminal.
func (all Keeps) Refresh(ctx context.Context, names []string, sink func([]host.Host) (fleet.Sink, error), t Terminal) error {
	missing, done := slices.Clone(names), &counted{}
	for _, p := range all {
		reports, err := collect[Report](Keeps{p}, askList, names)
		if err != nil {
			return err
		}
		var hosts []host.Host
		for _, r := range reports {
			for _, h := range r.Hosts {
				missing = slices.DeleteFunc(missing, func(name string) bool { return name == h.Host })
				hosts = append(hosts, host.Host{Name: h.Host})
			}
		}
		if len(hosts) == 0 {
			continue
		}
		shown, err := sink(hosts)
		if err == nil {
			err = p.refresh(ctx, names, output.Tee{shown, done}, t)
		}
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	switch {
	case len(missing) > 0:
		return fault.WithHint(fmt.Errorf("not kept: %s", hostset.Fold(missing)), hintList)
	case done.Total() == 0:
		return errNone
	}
	return output.Ending{Summary: done.Summary}.Verdict()
}

// counted counts the hosts of several runs.
type counted struct {
	fleet.Nothing
	fleet.Summary
}

// Done counts a host.
func (c *counted) Done(r fleet.Result, _ fleet.Summary) error {
	c.Add(&r)
	return nil
}

// refresh asks one keep.
func (p Keep) refresh(ctx context.Context, names []string, sink fleet.Sink, t Terminal) error {
	conn, err := p.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(request{askRefresh, names}); err != nil {
		return err
	}
	records, pass := io.Pipe()
	defer records.Close()
	go func() {
		for line, err := range journal.Lines(conn) {
			var q question
			switch {
			case err != nil:
			case json.Unmarshal(line, &q) == nil && q.Type == typeAsk:
				go q.answer(ctx, conn, t)
				continue
			default:
				_, err = pass.Write(append(bytes.Clone(line), '\n'))
			}
			if err != nil {
				pass.CloseWithError(err)
				return
			}
		}
		pass.Close()
	}()
	_, err = output.Replay(records, sink)
	return err
}

// answer asks the person.
func (q *question) answer(ctx context.Context, conn net.Conn, t Terminal) {
	if q.Shown {
		t.Show(q.Text)
		return
	}
	var answer *string
	if text, err := t.Ask(ctx, q.Text, q.Secret); err == nil {
		answer = &text
	}
	_ = json.NewEncoder(conn).Encode(answer)
}
