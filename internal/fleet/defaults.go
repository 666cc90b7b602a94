package fleet

import (
	"context"
	"errors"
	"time"
)

// The defaults of every Executor where neither the user nor ssh_config sets a value.
const (
	// ConnectTimeout is the time for a command to start: look-up, TCP, key exchange and login
	// included.
	ConnectTimeout = 15 * time.Second
	// AliveInterval is the silence after which a server gets a keepalive request.
	AliveInterval = 30 * time.Second
	// TermGrace is between TERM and KILL to a command, KillGrace between that and the end of its
	// connection, and DialogueGrace the time of a Dialogue for both.
	TermGrace     = 2 * time.Second
	KillGrace     = time.Second
	DialogueGrace = TermGrace + KillGrace
)

// ErrConnectTimeout is the cause of a context of a start that took too long.
var ErrConnectTimeout = errors.New("connect timeout")

// AnswerGrace is how much longer the answer to a command is waited for when ctx has ended: a
// running command must be ended politely, and only the answer shows that it runs.
func AnswerGrace(ctx context.Context) time.Duration {
	if errors.Is(context.Cause(ctx), ErrConnectTimeout) {
		return 0
	}
	return KillGrace
}
