// Package line describes connections that outlive the commands on them, whoever makes them, and
// shares them in a Pool.
package line

import (
	"context"
	"io"
)

// Line is a connection to a server after the login: our own, that of a live ControlMaster, or a
// process of ssh. Whoever makes it closes it; what runs over it does not. All methods may be called
// at the same time.
type Line interface {
	// Open opens a channel in addition to the open ones, and returns when the server has granted
	// the request. After an error nothing has begun: an *ssh.OpenChannelError is the server's
	// refusal of the channel; any other error may be the end of the line. A channel after the first
	// one of a ControlMaster is the exception: it ends at once if the server refuses the request.
	// The end of ctx only ends the wait.
	Open(ctx context.Context, a Ask) (Channel, error)
	// Done is closed when either side has ended the line. All channels of the line end then.
	Done() <-chan struct{}
	// Close ends the line and all its channels at once, without a message to the server.
	Close() error
}

// Ask is a request for a channel.
type Ask struct {
	Kind Kind
	Text string   // the command, the name of the subsystem, or host:port
	Env  []string // NAME=value, for a command or a subsystem; most servers ignore it
}

// Kind is a kind of channel.
type Kind string

// The kinds, with their names of RFC 4254.
const (
	Exec      Kind = "exec"
	Subsystem Kind = "subsystem"
	Forward   Kind = "direct-tcpip"
)

// Channel is what was asked for. It ends with its line at the latest. A channel that nobody reads
// does not stop the other channels of its line.
type Channel interface {
	// Reader reads the standard output, or the data of a forwarded connection. Standard error is
	// dropped.
	io.Reader
	// Writer waits while the server takes no more.
	io.Writer
	// CloseWrite ends the input.
	CloseWrite() error
	// Exit returns the exit status of a command, once its output was read to the end; -1 if the
	// server has sent none.
	Exit() int
	// Closer ends the channel, and all calls that wait in Read or Write.
	io.Closer
}
