// Package knownhosts is the format of OpenSSH's known_hosts files: their lines, the
// names under which hosts stand in them, hashed names, patterns and keys. It does no
// I/O.
//
// The rules are those of sshd(8), SSH_KNOWN_HOSTS FILE FORMAT, and where the manual is
// silent those of hostfile.c and match.c. The packages below this one each do one thing
// with such files; imports go from right to left:
//
//	knownhosts <- index <- check <- accept, pin
//	              index <- lint, split
//
// None of them connects or prints.
package knownhosts
