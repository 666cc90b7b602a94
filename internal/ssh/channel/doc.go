// Package channel is the client's half of the SSH connection protocol (RFC 4254):
// sessions and forwarded connections, side by side on one connection. One
// goroutine reads the connection and tells each channel's Handler what comes; what
// is not handed over is not read, so that no output waits in memory.
//
// Nothing is granted to a server: channels that it opens and requests that it
// makes are refused, whatever they are for.
package channel
