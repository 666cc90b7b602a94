// Package bed describes the place of a measurement: an ssh, its route to a server, and the server
// itself if it is our own. Each kind of measurement adds its own needs, such as files or a relay.
package bed

import (
	"time"

	"sshpace/internal/bench/loopback"
	"sshpace/internal/ssh/openssh"
)

// Bed is a client and its server.
type Bed struct {
	SSH         openssh.Program     // the client, unless it is the built-in one
	Destination openssh.Destination // how ssh, scp and sftp reach the server; not with the built-in client
	// Connect limits the time until the remote side of a connection is ready, and the time that a
	// transfer may stand still.
	Connect time.Duration
	Server  *loopback.Server // nil: a host of the user
}

// Own reports whether the server is our own.
func (b *Bed) Own() bool { return b.Server != nil }

// Explain returns the error for a login that failed, with a remedy.
func (b *Bed) Explain(why openssh.Failed) error { return b.SSH.Explain(b.Destination, why) }
