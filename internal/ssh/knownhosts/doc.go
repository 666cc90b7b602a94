// Package knownhosts is the format of OpenSSH's known_hosts files: their lines, the
// names under which hosts stand in them, hashed names, patterns and keys. It does no
// I/O.
//
// The rules are those of sshd(8), SSH_KNOWN_HOSTS FILE FORMAT, and where the manual is
// silent those of hostfile.c and match.c.
//
//   - Parse cuts a line into fields as ssh does: it takes what ssh takes, and its error says
//     why ssh passes over a line. Line.Key decodes the key, when somebody wants it.
//   - Line.Covers reports whether a line is about a host: by its name, by patterns and their
//     negations, or by the hash of its name.
//   - HostPort is the name of a host and a port in such a file; HashName hides it.
//
// It promises that a line which is read and written again is the same, and that no input
// makes it panic. A name that a line covers is one that ssh finds there, too.
//
// The packages below this one each do one thing with such files: index finds keys in files
// of any size, check decides whether a key may be trusted, tidy mends files. None of them
// connects or prints.
package knownhosts
