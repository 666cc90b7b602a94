// Package transport is the client's half of the SSH transport and user
// authentication protocols (RFC 4253, 4252) for logins in few round trips. Where
// other clients wait for an answer that changes nothing, it goes on: version line
// and KEXINIT leave together; NEWKEYS, the service request and a signed login
// leave together; and where the server is known to take it, so do the request
// for a session and its command. A cold command then takes four round trips, TCP
// included, where ssh takes nine.
//
// It knows what servers of the last fifteen years know: Algorithms; strict key exchange (against
// CVE-2023-48795) is always asked for. With a server that needs something else it fails
// with an *ssh.AlgorithmNegotiationError, before anything was sent that could count as a
// login. A password is given to a server alone whose host key was found right, and under the keys.
//
// Channels are package channel's (Mux).
package transport
