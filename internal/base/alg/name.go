package alg

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// Words splits what was typed for a list of algorithms: flags given several times,
// and lists with commas as in ssh_config. What holds no word at all stays, as an
// empty one, for no name is called so: it must not mean everything.
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

// Named returns those of the names that a word means: the name itself; else the
// one that is called so without its domain, as aes128-gcm for
// aes128-gcm@openssh.com; else what it matches as a glob with * and ?, with or
// without the domain. Upper and lower case are one: no two algorithms differ in it.
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

// undomained is a name without the domain that a private extension bears
// (RFC 4251 section 6).
func undomained(name string) string {
	local, _, _ := strings.Cut(strings.ToLower(name), "@")
	return local
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// NamesOf are algorithms as people type them, by the names of the table; what it does
// not name, such as a glob, stays as it is.
func NamesOf(kind Kind, typed []string) []string {
	var names []string
	for _, word := range Words(typed) {
		if named := Named(word, Names(kind)); len(named) > 0 {
			names = append(names, named...)
		} else {
			names = append(names, word)
		}
	}
	return names
}

// CertSuffix ends the names of OpenSSH's certificates and of signatures by their keys.
const CertSuffix = "-cert-v01@openssh.com"

// Plain is the name of a key or signature that a certificate's stands for; others stay.
func Plain(name string) string {
	plain, cert := strings.CutSuffix(name, CertSuffix)
	if cert && strings.HasPrefix(plain, "sk-") {
		return plain + "@openssh.com"
	}
	return plain
}
