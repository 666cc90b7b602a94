package fleet

import (
	"context"
	"errors"
	"time"
)

// What every Executor keeps to where neither the user nor ssh_config says otherwise.
const (
	// ConnectTimeout is how long a command may take to start: look-up, TCP, key exchange
	// and login with it.
	ConnectTimeout = 15 * time.Second
	// AliveInterval is the silence after which a server is asked for a sign of life.
	AliveInterval = 30 * time.Second
	// TermGrace is between TERM and KILL to a command, KillGrace between that and the end
	// of its connection, and DialogueGrace what a Dialogue has for both.
	TermGrace     = 2 * time.Second
	KillGrace     = time.Second
	DialogueGrace = TermGrace + KillGrace
)

// ErrConnectTimeout is the cause of a context of a start that took too long.
var ErrConnectTimeout = errors.New("connect timeout")

// AnswerGrace is how much longer the answer to a command is waited for when ctx has ended:
// what runs already is to be ended politely, and only the answer tells that it does.
func AnswerGrace(ctx context.Context) time.Duration {
	if errors.Is(context.Cause(ctx), ErrConnectTimeout) {
		return 0
	}
	return KillGrace
}
