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

// spellings maps the other names, in lower case (apps/speed.c, names).
var spellings = map[string]string{
	"des cbc":           "des-cbc",
	"des ede3":          "des-ede3",
	"idea cbc":          "idea-cbc",
	"seed cbc":          "seed-cbc",
	"rc2 cbc":           "rc2-cbc",
	"rc5-32/12 cbc":     "rc5-cbc",
	"blowfish cbc":      "blowfish",
	"cast cbc":          "cast-cbc",
	"camellia-128 cbc":  "camellia-128-cbc",
	"camellia-192 cbc":  "camellia-192-cbc",
	"camellia-256 cbc":  "camellia-256-cbc",
	"chacha20-poly1305": "ChaCha20-Poly1305",
}

// symmetricName returns the one name of a cipher or a digest.
func symmetricName(printed string) string {
	if match := aesName().FindStringSubmatch(printed); match != nil {
		return "AES-" + match[1] + "-" + strings.ToUpper(match[2])
	}
	name := strings.ToLower(printed)
	if spelled, ok := spellings[name]; ok {
		return spelled
	}
	return name
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
