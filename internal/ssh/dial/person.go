package dial

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/transport"
)

// Person is the Prompter that lets a person answer, one login after the other. The others are not
// connected meanwhile: no server waits for minutes (sshd_config(5) LoginGraceTime).
type Person struct {
	// Away reports that no person is there now: then no host may ask. nil: one always is.
	Away func() bool

	alone    func(do func())
	ask      func(ctx context.Context, text string, secret bool) (string, error)
	show     func(text string)
	turns    [depths]semaphore // of logins, by the number of jump hosts before them: with a turn one may wait for those
	terminal semaphore         // of questions
}

// depths is more than any path to a host has.
const depths = 10

// NewPerson makes a Person. alone does something while nothing else is on the terminal. ask, which
// is called so, shows a text and reads a line, which secret hides; io.EOF is no answer. show
// shows a text that asks nothing. Both get text that is safe on a terminal.
func NewPerson(alone func(do func()), ask func(ctx context.Context, text string, secret bool) (string, error), show func(text string)) *Person {
	p := &Person{alone: alone, ask: ask, show: show, terminal: make(semaphore, 1)}
	for i := range p.turns {
		p.turns[i] = make(semaphore, 1)
	}
	return p
}

// semaphore is held by one at a time.
type semaphore chan struct{}

func (s semaphore) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errNoAnswer = errors.New("no answer was given")

// Ask asks one question, when nobody else asks.
func (p *Person) Ask(ctx context.Context, text string, secret bool) (string, error) {
	var answer string
	err := p.aside(ctx, func() (err error) {
		answer, err = p.ask(ctx, text, secret)
		return err
	})
	if errors.Is(err, io.EOF) {
		err = errNoAnswer
	}
	return answer, err
}

// aside does something that may ask a person by other means, when nobody else asks. Without a
// Person it does so at once.
func (p *Person) aside(ctx context.Context, do func() error) (err error) {
	if p == nil {
		return do()
	}
	if err := p.terminal.take(ctx); err != nil {
		return err
	}
	defer func() { <-p.terminal }()
	p.alone(func() { err = do() })
	return err
}

// Answer asks the questions of a host. Each line begins with its name, so that no host can ask in
// the name of another.
func (p *Person) Answer(ctx context.Context, host string, asked transport.Asked, _ bool) ([]string, error) {
	said := linesOf(host, asked.Name+"\n"+asked.Instruction)
	if len(asked.Questions) == 0 && said != "" {
		p.show(said)
	}
	var answers []string
	for _, q := range asked.Questions {
		text := said + linesOf(host, cmp.Or(strings.TrimSpace(q.Text), "?"))
		answer, err := p.Ask(ctx, strings.TrimSuffix(text, "\n")+" ", !q.Echo)
		if err != nil {
			return nil, err
		}
		said, answers = "", append(answers, answer)
	}
	return answers, nil
}

// Told does nothing: each answer is for one host.
func (*Person) Told(string, bool, bool) {}

// maxAsked is how much of a text of a server is shown to a person.
const maxAsked = 4096

// linesOf returns the lines of a text that are not empty, each behind a host's name.
func linesOf(host, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text[:min(len(text), maxAsked)]) {
		if line = strings.TrimRight(line, " \r\n"); line != "" {
			b.WriteString("(" + termsafe.Line(host) + ") " + termsafe.Line(line) + "\n")
		}
	}
	return b.String()
}

// turn is a login's right to ask a person.
type turn struct {
	person   *Person // nil: nobody is asked
	turns    semaphore
	progress Progress
	taken    bool
	gone     bool // the server, while a person was asked
}

func (t *Target) turn(p Progress) *turn {
	person, _ := t.Prompter.(*Person)
	if person == nil {
		return &turn{}
	}
	depth := 0
	for j := t.Jump; j != nil && depth < depths-1; j = j.Jump {
		depth++
	}
	return &turn{person: person, turns: person.turns[depth], progress: p}
}

// errTurn ends a login that has to ask a person while another one does.
var errTurn = errors.New("others ask first")

// take begins the turn, unless another login has it. The login is no longer one that waits for its
// server.
func (t *turn) take(ctx context.Context) bool {
	if !t.taken {
		select {
		case t.turns <- struct{}{}:
			t.taken = true
		default:
			return false
		}
	}
	_ = t.progress.Admit(ctx, "")
	return true
}

// await waits for the turn, without a connection.
func (t *turn) await(ctx context.Context) error {
	if err := t.progress.Admit(ctx, ""); err != nil {
		return err
	}
	err := t.turns.take(ctx)
	t.taken = err == nil
	return err
}

func (t *turn) end() {
	if t.taken {
		<-t.turns
	}
}

// patience is the time of a login, which does not pass while a person is asked.
type patience struct {
	context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	mu     sync.Mutex
	until  time.Time
}

// What a login has time for while a person is asked, and while a server waits for what the person
// does elsewhere, such as on a telephone (sshd_config(5) LoginGraceTime).
const (
	anyTime   = 365 * 24 * time.Hour
	graceTime = 2 * time.Minute
)

func patient(ctx context.Context, d time.Duration) *patience {
	p := &patience{until: time.Now().Add(d)}
	p.Context, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(d, func() { p.cancel(fleet.ErrConnectTimeout) })
	return p
}

// Deadline returns when the time is over, unless it gets more by then.
func (p *patience) Deadline() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until, true
}

// give sets the time from now on.
func (p *patience) give(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(d)
	p.timer.Reset(d)
}

// end ends the login's time.
func (p *patience) end() {
	p.timer.Stop()
	p.cancel(nil)
}
