package wildcard

import (
	"regexp"
	"sync"
)

// Lazy is a regular expression for a package's variable. It panics when it is
// used for the first time, if it cannot be compiled.
func Regexp(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
