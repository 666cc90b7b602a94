package hub

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"sshpace/internal/base/termsafe"
)

// serverLog passes on what the server of NATS says of trouble.
type serverLog struct {
	log func(string)

	mu     sync.Mutex
	said   string // the last one
	broken bool   // it has not written to its disk, and does not try again
}

// about is how the server names a connection; only the name that the user gives it is of use.
var about = regexp.MustCompile(`^\w+ - cid:\d+ - ("[^"]*:([^":]*)" - ("[^"]*" - )?)?`)

func (l *serverLog) say(format string, v []any) {
	text := about.ReplaceAllString(termsafe.Line(fmt.Sprintf(format, v...)), "a user ($2): ")
	l.mu.Lock()
	again := l.broken && strings.Contains(text, "failed to store a msg") // one for each message
	l.said, l.broken = text, l.broken || strings.Contains(text, "critical write error")
	l.mu.Unlock()
	if l.log != nil && !again {
		l.log(text)
	}
}

// last returns the last trouble, nil for none.
func (l *serverLog) last() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == "" {
		return nil
	}
	return errors.New(l.said)
}

// failed reports whether the server has given up writing.
func (l *serverLog) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

func (l *serverLog) Warnf(format string, v ...any)  { l.say(format, v) }
func (l *serverLog) Errorf(format string, v ...any) { l.say(format, v) }
func (l *serverLog) Fatalf(format string, v ...any) { l.say(format, v) }
func (*serverLog) Noticef(string, ...any)           {}
func (*serverLog) Debugf(string, ...any)            {}
func (*serverLog) Tracef(string, ...any)            {}
