//go:build linux

package programs

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"
)

// families are PuTTY's words for ciphers, by the beginnings of their names (PuTTY manual, 4.20.1).
// PuTTY can be given an order of families, and with WARN, in batch mode, a limit; of the members of
// a family it takes the one with the longest key that the server has.
var families = []struct{ begin, family string }{
	{"chacha20", "chacha20"}, {"aes128-gcm", "aesgcm"}, {"aes256-gcm", "aesgcm"},
	{"aes", "aes"}, {"rijndael", "aes"}, {"3des", "3des"}, {"blowfish", "blowfish"}, {"arcfour", "arcfour"},
}

// allFamilies are PuTTY's, in its own order. A session has to name all of them: PuTTY places
// missing ones as it likes.
var allFamilies = []string{"aes", "chacha20", "aesgcm", "3des", "WARN", "des", "blowfish", "arcfour"}

// familyOrder puts one family first, and all others after WARN, where they are refused.
func familyOrder(family string) string {
	order := allFamilies
	if family != "" {
		order = append([]string{family, "WARN"}, slices.DeleteFunc(slices.Clone(allFamilies), func(f string) bool { return f == family || f == "WARN" })...)
	}
	return strings.Join(order, ",")
}

func familyOf(cipher string) string {
	for _, f := range families {
		if strings.HasPrefix(cipher, f.begin) {
			return f.family
		}
	}
	return ""
}

// session writes PuTTY's configuration into a directory of this run and returns the options that
// all of PuTTY's programs share.
func (b *Setup) session(ctx context.Context, o Order) (argv, env []string, err error) {
	key := b.Dir.File("user_key.ppk")
	if err := b.convert(ctx, key, "puttygen", b.Keys.Identity, "-o", key, "-O", "private"); err != nil {
		return nil, nil, err
	}
	print, err := b.fingerprint()
	if err != nil {
		return nil, nil, err
	}
	sessions, err := b.directory("putty", "sessions")
	if err != nil {
		return nil, nil, err
	}
	text := "Protocol=ssh\nPortNumber=" + o.Port + "\nCipher=" + familyOrder(familyOf(o.Want.Cipher)) + "\nCompression=0\nTryAgent=0\nAgentFwd=0\nX11Forward=0\n"
	argv = []string{"-load", "sshpace", "-batch", "-P", o.Port, "-l", b.User, "-i", key, "-noagent", "-hostkey", "SHA256:" + print}
	return argv, []string{"PUTTYDIR=" + filepath.Dir(sessions)}, put(filepath.Join(sessions, "sshpace"), text)
}

func plinkOrder(b *Setup, path string) func(context.Context, Order) (process, error) {
	return func(ctx context.Context, o Order) (process, error) {
		options, env, err := b.session(ctx, o)
		argv := append(append([]string{path, "-ssh", "-T", "-noshare", "-no-antispoof"}, options...), o.Host, o.Remote)
		return process{Argv: argv, Env: env, Plain: plain}, err
	}
}

func psftpOrder(b *Setup, path string) func(context.Context, Order) (process, error) {
	return func(ctx context.Context, o Order) (process, error) {
		options, env, err := b.session(ctx, o)
		if err != nil {
			return process{}, err
		}
		script := b.Dir.File("psftp.batch")
		argv := append(append([]string{path, "-b", script}, options...), o.Host)
		return process{Argv: argv, Env: env, Plain: plain}, put(script, "put "+o.From+" "+o.To+"\n")
	}
}

// explanation matches a sentence that PuTTY wraps.
var explanation = wildcard.Regexp(`(?ms)^The .{1,400}?\.$`)

// plain returns the output of PuTTY's programs, or the explanation alone where there is one, on one
// line.
func plain(said string) string {
	if why := explanation().FindString(said); why != "" {
		return strings.Join(strings.Fields(why), " ")
	}
	return said
}
