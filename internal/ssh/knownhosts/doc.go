// Package knownhosts reads, checks, extends and reorganises the known_hosts
// files of OpenSSH.
//
// OpenSSH scans every line of every file at least twice per connection
// (hostfile.c:hostkeys_foreach, called for the order of the algorithms and for
// the check itself), and computes one HMAC-SHA1 per hashed line each time. That
// is nothing for ten hosts and most of the cost of a login for ten thousand.
// Index does that work once for a whole process: plain names are in a map,
// patterns in a short list, and hashed lines are tried once per distinct name.
// Split does it once for all: one small file per host, for OpenSSH itself.
//
// The rules of the format are those of sshd(8), SSH_KNOWN_HOSTS FILE FORMAT, and
// where the manual is silent those of hostfile.c and match.c. Tests compare
// every rule with the installed ssh-keygen and ssh.
//
// The package does not connect, print or decide whether an unknown key is
// accepted; it says what is known, and the caller decides.
package knownhosts
