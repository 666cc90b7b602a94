package wildcard

import (
	"regexp"
	"sync"
)

// Regexp returns a regular expression for a package's variable, compiled at its first use. An
// invalid one panics then.
func Regexp(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
