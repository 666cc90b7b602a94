package alg

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// Words splits a list of algorithms as typed: flags given several times, and lists with commas as
// in ssh_config. An empty list gives one empty word, which matches no name: it must not mean
// everything.
func Words(typed []string) []string {
	var words []string
	for _, text := range typed {
		found := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		if len(found) == 0 {
			found = []string{""}
		}
		words = append(words, found...)
	}
	return words
}

// Named returns the names that a word means: the exact name; otherwise the name that equals it
// without its domain, as aes128-gcm for aes128-gcm@openssh.com; otherwise all that match it as a
// glob with * and ?, with or without the domain. Case does not matter: no two algorithms differ in
// it.
func Named(word string, names []string) []string {
	word = strings.ToLower(word)
	for _, called := range []func(name string) bool{
		func(name string) bool { return strings.ToLower(name) == word },
		func(name string) bool { return undomained(name) == word },
		func(name string) bool { return matches(word, strings.ToLower(name)) || matches(word, undomained(name)) },
	} {
		if found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !called(name) }); len(found) > 0 {
			return found
		}
	}
	return nil
}

// undomained returns a name without the domain of a private extension (RFC 4251 section 6).
func undomained(name string) string {
	local, _, _ := strings.Cut(strings.ToLower(name), "@")
	return local
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// CertSuffix ends the names of OpenSSH's certificates and of the signatures by their keys.
const CertSuffix = "-cert-v01@openssh.com"

// Plain returns the name of the key or signature type below a certificate's type; other names stay.
func Plain(name string) string {
	plain, cert := strings.CutSuffix(name, CertSuffix)
	if cert && strings.HasPrefix(plain, "sk-") {
		return plain + "@openssh.com"
	}
	return plain
}
