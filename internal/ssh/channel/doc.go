// Package channel is the client's half of the SSH connection protocol (RFC 4254):
// sessions and forwarded connections, side by side on one connection. One
// goroutine at a time reads the connection and tells each channel's Handler what
// comes. No Handler stops another channel; where there is no other one, what is not
// handed over is not read, so that no output waits in memory.
//
// Nothing is granted to a server: channels that it opens and requests that it
// makes are refused, whatever they are for.
package channel
