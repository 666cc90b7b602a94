package speed

import (
	"strings"

	"sshpace/internal/base/wildcard"
)

// Versions of OpenSSL name one computation differently: aes-128 cbc (1.x), aes-128-cbc (3.x),
// AES-128-CBC (3.x, -evp); rsa 2048 bits and rsa2048 (as a signature algorithm). Figures have the
// name of OpenSSL 3, AES as with -evp, so that files of different versions can be compared.

var (
	aesName  = wildcard.Regexp(`(?i)^(?:id-)?aes-?(128|192|256)[- ]([a-z0-9-]+)$`)
	bitsName = wildcard.Regexp(`^(rsa|dsa)([0-9]+)$`)
)

// symmetricName returns the one name of a cipher or a digest.
func symmetricName(printed string) string {
	if match := aesName().FindStringSubmatch(printed); match != nil {
		return "AES-" + match[1] + "-" + strings.ToUpper(match[2])
	}
	switch name := strings.ToLower(printed); name { // apps/speed.c, names
	case "des cbc", "des ede3", "idea cbc", "seed cbc", "rc2 cbc", "cast cbc", "camellia-128 cbc", "camellia-192 cbc", "camellia-256 cbc":
		return strings.Replace(name, " ", "-", 1)
	case "rc5-32/12 cbc":
		return "rc5-cbc"
	case "blowfish cbc":
		return "blowfish"
	case "chacha20-poly1305":
		return "ChaCha20-Poly1305"
	default:
		return name
	}
}

// asymmetricName returns the one name of a row of operations, whose bits may stand before the name
// or after it.
func asymmetricName(printed string) string {
	match := bitsRow().FindStringSubmatch(printed)
	switch {
	case match == nil:
		return bitsName().ReplaceAllString(printed, "$1 $2")
	case match[2] != "" && match[3] == "": // "2048 bits ffdh"
		return match[2] + " " + match[1]
	}
	return match[4] + match[2] + " " + match[5] + match[3]
}
