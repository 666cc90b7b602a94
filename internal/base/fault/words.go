package fault

import (
	"io/fs"
	"strings"
)

// Words is what an error says, without the system calls that Go puts before names of
// files: "FILE: no such file or directory" for "open FILE: no such file or directory".
func Words(err error) string {
	says := err.Error()
	for _, at := range pathErrors(err) {
		says = strings.Replace(says, at.Error(), at.Path+": "+at.Err.Error(), 1)
	}
	return says
}

// pathErrors are what an error, and those that it wraps, say of files.
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
