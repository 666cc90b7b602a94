package output

import (
	"bytes"
	"net/netip"
	"strings"

	"sshpace/internal/base/wildcard"
)

// names are the forms of a host's own name: its name and, for a name with dots, the part before the
// first; the longer one first.
type names [][]byte

func namesOf(name string) names {
	own := names{[]byte(name)}
	if _, err := netip.ParseAddr(name); err == nil {
		return own
	}
	if short, _, found := strings.Cut(name, "."); found && len(short) > 1 {
		own = append(own, []byte(short))
	}
	return own
}

// ownMark replaces the host itself in texts that are equal for several hosts.
const ownMark = "<host>"

var (
	// lookedUp matches the words before the name that ssh_config has for a host.
	lookedUp  = wildcard.Regexp(`(connect to host |resolve hostname )(\S+?)(:? )`)
	addresses = wildcard.Regexp(`[0-9A-Fa-f]*[.:][0-9A-Fa-f.:]+`)
	// fingerprints match those of keys, and knownLines the places of keys in files, as package
	// check writes them.
	fingerprints = wildcard.Regexp(`SHA256:[0-9A-Za-z+/]{43}`)
	knownLines   = wildcard.Regexp(`:[0-9]+(: it offered | \(a key | \(\S+ SHA256:)`)
)

// WithoutHost removes a host's names, addresses and keys from a message: the result is equal for
// all hosts with the same error.
func WithoutHost(text, name string) string {
	text = string(namesOf(name).replace(nil, []byte(text), []byte(ownMark)))
	text = lookedUp().ReplaceAllString(text, "${1}"+ownMark+"${3}")
	text = knownLines().ReplaceAllString(text, ":<line>${1}")
	text = fingerprints().ReplaceAllString(text, "<fingerprint>")
	return addresses().ReplaceAllStringFunc(text, func(word string) string {
		if a, err := netip.ParseAddrPort(word); err == nil {
			return strings.Replace(word, a.Addr().String(), ownMark, 1)
		}
		bare := strings.TrimRight(word, ".:") // which end a sentence
		if _, err := netip.ParseAddr(bare); err != nil {
			return word
		}
		return ownMark + word[len(bare):]
	})
}

// replace appends text to dst with every own name that stands alone as a word replaced.
func (own names) replace(dst, text, with []byte) []byte {
	for len(text) > 0 {
		at, length := own.first(text)
		if at < 0 {
			break
		}
		dst = append(dst, text[:at]...)
		dst = append(dst, with...)
		text = text[at+length:]
	}
	return append(dst, text...)
}

// first finds the first own name in text that stands alone.
func (own names) first(text []byte) (at, length int) {
	at = -1
	for _, name := range own {
		if i := indexWord(text, name); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(name)
		}
	}
	return at, length
}

func indexWord(text, word []byte) int {
	for from := 0; ; {
		i := bytes.Index(text[from:], word)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(word)
		if (i == 0 || !wordByte(text[i-1])) && (end == len(text) || !wordByte(text[end])) {
			return i
		}
		from = i + 1
	}
}

// wordByte lists the characters that extend a word, unlike a dot: web1.example.com contains web1.
func wordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}
