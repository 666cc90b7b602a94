package sudo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"sshpace/internal/base/fault"
	"sshpace/internal/sys/proc"
)

// Password is one password for all hosts. The first host that asks is the only one that gets it
// until it has proved right there: a mistyped password costs one try, not one on each host of an
// account that they share.
type Password struct {
	mu      sync.Mutex
	text    string
	ask     func(context.Context) (string, error) // for text, when a host is first to get it; nil: it is known
	changed chan struct{}                         // closed when state changes
	state   trial
	by      string // the host that tries it, or refused it
}

type trial uint8

const (
	untried trial = iota
	trying
	accepted
	refused
)

// NewPassword takes a password; "" is none, and then no host gets one.
func NewPassword(text string) *Password { return &Password{text: text, changed: make(chan struct{})} }

// AskFor returns a password that the user is asked for once, when a host wants it.
func AskFor(ask func(context.Context) (string, error)) *Password {
	p := NewPassword("")
	p.ask = ask
	return p
}

// Set sets a password that was unknown before.
func (p *Password) Set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// Text returns the password, "" for none.
func (p *Password) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

// Offer waits until the password may be given to a host, or returns why it may not. The caller must
// then report the result by Told.
func (p *Password) Offer(ctx context.Context, host string) error {
	for {
		p.mu.Lock()
		state, by, changed := p.state, p.by, p.changed
		if state == untried {
			p.set(trying, host)
		}
		p.mu.Unlock()
		switch state {
		case untried:
			return p.known(ctx, host)
		case accepted:
			return nil
		case refused:
			return fmt.Errorf("the password was refused on %s and is tried nowhere else", by)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// known asks for the password, on behalf of the host that tries it first.
func (p *Password) known(ctx context.Context, host string) error {
	p.mu.Lock()
	ask := p.ask
	p.mu.Unlock()
	if ask != nil {
		text, err := ask(ctx)
		if err != nil { // another host may ask
			p.Told(host, false, false)
			return err
		}
		p.mu.Lock()
		p.text, p.ask = text, nil
		p.mu.Unlock()
	}
	if p.Text() == "" {
		p.Told(host, false, false)
		return errNone
	}
	return nil
}

// Told reports the result of the password on a host that was offered it: whether it was right, if
// that is known.
func (p *Password) Told(host string, right, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case right:
		p.set(accepted, host)
	case p.state != trying || p.by != host:
	case known:
		p.set(refused, host)
	default:
		p.set(untried, "")
	}
}

// set changes the state. mu is held.
func (p *Password) set(state trial, host string) {
	p.state, p.by = state, host
	close(p.changed)
	p.changed = make(chan struct{})
}

// mostPrinted is how much of a command's output is read for a password, in bytes.
const mostPrinted = 64 << 10

// PasswordFrom returns the first line that a command prints, by sh.
func PasswordFrom(ctx context.Context, command string, stderr io.Writer) (string, error) {
	out, err := proc.Shell(ctx, command, nil, stderr, mostPrinted)
	if err != nil {
		return "", &fault.Error{Err: fmt.Errorf("--password-command: %w", err), Hint: "it must print the password and end with 0", Code: fault.Misuse}
	}
	text, _, _ := strings.Cut(out, "\n")
	if text = strings.TrimSuffix(text, "\r"); text == "" {
		return "", fault.Usage("it must print the password in its first line", "--password-command printed nothing")
	}
	return text, nil
}
