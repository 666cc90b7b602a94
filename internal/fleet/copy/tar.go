package copy

import (
	"fmt"
	"strings"
)

// The ustar format (IEEE Std 1003.1, pax, "ustar Interchange Format"). The package
// archive/tar refuses names that are not ASCII in it, which every tar takes as they
// are.
const (
	tarBlock  = 512
	tarFile   = '0'
	tarFolder = '5'

	nameField   = 100
	prefixField = 155
)

// zeros end an archive, in part a file.
var zeros [2 * tarBlock]byte

// splitName cuts a name into the two fields that it has; ok is false where it does
// not fit.
func splitName(name string) (prefix, rest string, ok bool) {
	if len(name) <= nameField {
		return "", name, true
	}
	from := len(name) - nameField - 1
	i := strings.IndexByte(name[from:], '/')
	if i < 0 || from+i > prefixField || from+i == 0 {
		return "", "", false
	}
	return name[:from+i], name[from+i+1:], true
}

// appendTarHeader appends the block that describes a file or folder whose name fits, and
// whose time is not before 1970 nor after 2242.
func appendTarHeader(to []byte, name string, kind byte, perm uint32, size, modified int64) []byte {
	prefix, rest, _ := splitName(name)
	start := len(to)
	to = append(to, zeros[:tarBlock]...)
	b := to[start:]
	copy(b, rest)
	octal(b[100:108], int64(perm))
	octal(b[108:116], 0) // nobody's: who unpacks it has it
	octal(b[116:124], 0)
	octal(b[124:136], size)
	octal(b[136:148], modified)
	copy(b[148:], "        ")
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	copy(b[345:], prefix)
	sum := int64(0)
	for _, c := range b {
		sum += int64(c)
	}
	octal(b[148:155], sum)
	return to
}

// octal fills a field with digits and a zero byte.
func octal(field []byte, n int64) {
	copy(field, fmt.Sprintf("%0*o", len(field)-1, n))
	field[len(field)-1] = 0
}
