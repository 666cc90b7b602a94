// pattern.go holds regular expressions that are compiled when they are used
// for the first time: most runs of the program need none of them, and a login
// that waits for hundreds of microseconds of compiling is a slow one.

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
