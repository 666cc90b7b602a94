// Package channel is the client's half of the SSH connection protocol (RFC 4254): sessions and
// forwarded connections, side by side on one connection. One goroutine at a time reads the
// connection and passes messages to each channel's Handler. No Handler stops another channel; if
// there is no other one, nothing is read until the Handler takes it, so that no output waits in
// memory.
//
// Nothing is granted to a server: channels that it opens are refused unless Conn.Accept wants them,
// and so are all requests that it makes.
package channel
