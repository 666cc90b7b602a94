package fault

import (
	"io/fs"
	"strings"
)

// Words returns the text of an error without the system calls that Go puts before file names:
// "FILE: no such file or directory" for "open FILE: no such file or directory".
func Words(err error) string {
	text := err.Error()
	for _, at := range pathErrors(err) {
		text = strings.Replace(text, at.Error(), at.Path+": "+at.Err.Error(), 1)
	}
	return text
}

// pathErrors returns the errors about files within an error and all that it wraps.
func pathErrors(err error) (all []*fs.PathError) {
	switch e := err.(type) {
	case *fs.PathError:
		return []*fs.PathError{e}
	case interface{ Unwrap() error }:
		return pathErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = append(all, pathErrors(inner)...)
		}
	}
	return all
}
