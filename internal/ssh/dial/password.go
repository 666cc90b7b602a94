package dial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/transport"
)

// Prompter answers the questions of a server during a login.
type Prompter interface {
	// Answer returns an answer to each question of a host, or an error, which ends the login. It
	// may wait for a person, or for another host. again is true if the same login has had an
	// answer.
	Answer(ctx context.Context, host string, asked transport.Asked, again bool) ([]string, error)
	// Told reports the result of a login's answers, after the first one: whether all were right, if
	// it is known.
	Told(host string, right, known bool)
}

// Password is a person's, for hosts that want one. Each gets it at most once.
type Password interface {
	// Offer waits until a host may have it, or returns why it may not.
	Offer(ctx context.Context, host string) error
	Text() string
	// Told reports whether it was right there, if that is known. It follows each Offer.
	Told(host string, right, known bool)
}

// offered is the state of the Prompter in one login.
type offered struct {
	methods []string // that were tried, in turn
	silent  []string // those in which the host has asked nothing
	asked   bool     // it has in the last one
	given   bool     // it has an answer
	err     error    // why it was not
}

// method returns the method by which to give the password, among those that can continue; "" if it
// may not be given. Passphrases of keys are not passwords: the secret that opens a key is sent to
// nobody.
func (l *login) method(can []string, partial bool) string {
	o, person := &l.offered, l.turn.person != nil
	if l.prompter() == nil || !person && o.given || o.err != nil {
		return ""
	}
	if n := len(o.methods); n > 0 && !o.asked {
		o.silent = append(o.silent, o.methods[n-1])
	}
	i := slices.IndexFunc(l.target.PasswordMethods, func(m string) bool {
		tries := len(slices.DeleteFunc(slices.Clone(o.methods), func(tried string) bool { return tried != m }))
		return slices.Contains(can, m) && tries < max(1, l.target.Prompts) && !slices.Contains(o.silent, m)
	})
	if i < 0 || !person && l.set.openedBy(l.ctx) {
		return ""
	}
	if person {
		if !l.turn.take(l.ctx) {
			o.err = errTurn
			return ""
		}
		l.ctx.give(graceTime)
	}
	if !partial {
		l.used = nil // no key has helped
	}
	o.methods, o.asked = append(o.methods, l.target.PasswordMethods[i]), false
	return l.target.PasswordMethods[i]
}

// prompter returns who can answer now.
func (l *login) prompter() Prompter {
	if p := l.turn.person; p != nil && p.Away != nil && p.Away() {
		return nil
	}
	return l.target.Prompter
}

func (l *login) fail(err error) error {
	l.offered.err = err
	return l.denied(slices.Compact(slices.Clone(l.offered.methods)), false)
}

var errGone = errors.New("the server has ended the login by now")

// aside does something that a person may have to be asked for, in no time of the login's.
func (l *login) aside(then time.Duration, do func()) {
	l.ctx.give(anyTime)
	do()
	l.ctx.give(then)
	l.turn.gone = l.hungUp()
}

// answer lets the Prompter answer the server's questions, of which there may be none.
func (l *login) answer(asked transport.Asked) (answers []string, err error) {
	o := &l.offered
	switch {
	case l.turn.person != nil:
		l.aside(graceTime, func() { answers, err = l.target.Prompter.Answer(l.ctx, l.target.account(), asked, o.given) })
	case len(asked.Questions) > 0:
		answers, err = l.target.Prompter.Answer(l.ctx, l.target.addr(), asked, o.given)
	}
	if err == nil && l.turn.gone {
		err = errGone
	}
	if err != nil {
		return nil, l.fail(err)
	}
	o.asked, o.given = true, o.given || len(answers) > 0
	return answers, nil
}

// PasswordAlone is the Prompter that knows a password and nothing else: it answers one question for
// a password that is hidden (RFC 4256). Any other question is for somebody else, or a trick.
type PasswordAlone struct{ Password }

// Answer gives the password.
func (p PasswordAlone) Answer(ctx context.Context, host string, asked transport.Asked, again bool) ([]string, error) {
	questions := asked.Questions
	if len(questions) != 1 || questions[0].Echo || !asksPassword(questions[0].Text) {
		var texts []string
		for _, q := range questions {
			texts = append(texts, q.Text)
		}
		return nil, fmt.Errorf("the host asks %q, which gets no password", clip(strings.Join(texts, " ")))
	}
	if again {
		return nil, errors.New("the host asked for the password twice")
	}
	if err := p.Offer(ctx, host); err != nil {
		return nil, err
	}
	return []string{p.Text()}, nil
}

// otherSecrets are words of questions for something else than the account's password.
var otherSecrets = []string{"one-time", "onetime", "otp", "token", "code", "new password", "retype", "again"}

func asksPassword(question string) bool {
	question = strings.ToLower(question)
	return strings.Contains(question, "passw") && !slices.ContainsFunc(otherSecrets, func(w string) bool { return strings.Contains(question, w) })
}

// reported tells the Prompter the result of its answer.
func (l *login) reported(err error) {
	if !l.offered.given {
		return
	}
	own, _ := err.(*Error)
	refused := own != nil && own.Class == fleet.AuthFailed && !errors.Is(err, transport.ErrNewPassword)
	l.target.Prompter.Told(l.target.addr(), err == nil, err == nil || refused)
}

// openedBy reports whether the requested secret opens a key: then it is a passphrase.
func (s *keySet) openedBy(ctx context.Context) bool {
	for _, k := range s.keys {
		if f, ok := k.(*keyFile); ok && f.encrypted {
			f.once.Do(func() { f.unlock(ctx) })
			if f.ready {
				return true
			}
		}
	}
	return false
}
