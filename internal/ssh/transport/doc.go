// Package transport is the client's half of the SSH transport and user authentication protocols
// (RFC 4253, 4252) for logins in few round trips. Where other clients wait for an answer that
// changes nothing, it continues: version line and KEXINIT leave together; NEWKEYS, the service
// request and a signed login leave together; and if the server is known to accept it, so do the
// request for a session and its command. A cold command then takes four round trips, TCP included,
// where ssh takes nine.
//
// It knows the algorithms of servers of the last fifteen years: Algorithms; strict key exchange
// (against CVE-2023-48795) is always requested. With a server that needs something else it fails
// with an *ssh.AlgorithmNegotiationError, before anything was sent that could count as a login. A
// password is given only to a server whose host key was verified, and under the keys.
//
// Channels belong to package channel (Mux).
package transport
