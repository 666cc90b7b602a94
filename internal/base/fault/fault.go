// Package fault is errors for people: what failed, what to do next, and which names a mistyped one
// may have meant. It writes nothing, and knows no command.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
)

// Exit codes beyond "something failed".
const (
	Misuse       = 2 // an error in flags, arguments or configuration
	Found        = 3 // succeeded, and found something, such as a regression
	Unreachable  = 4 // some hosts unreachable, nothing else wrong
	Inconclusive = 5 // ran well, but cannot answer the question yet
)

// Error says what failed and what the user can do about it.
type Error struct {
	What string // "": the text of Err
	Hint string
	Code int // exit code; 0 means 1
	Err  error
}

func (e *Error) Error() string {
	if e.What == "" && e.Err != nil {
		return e.Err.Error()
	}
	return e.What
}

func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns the exit code of the error, or of the error it wraps.
func (e *Error) ExitCode() int {
	if e.Code != 0 {
		return e.Code
	}
	if inner, ok := errors.AsType[*Error](e.Err); ok {
		return inner.ExitCode()
	}
	return 1
}

// Usage is an error in the flags or arguments.
func Usage(hint, format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Hint: hint, Code: Misuse}
}

// errSilent is the text of an error without a message.
var errSilent = errors.New("already reported")

// Exit returns an error with an exit code and no message; nil for 0.
func Exit(code int) error {
	if code == 0 {
		return nil
	}
	return &Error{Err: errSilent, Code: code}
}

// Silent reports whether an error has no message.
func Silent(err error) bool { return errors.Is(err, errSilent) }

// WithHint adds to err what the user can do about it; nil stays nil.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &Error{Err: err, Hint: hint}
}

// HintOf returns the hint of err: what the user can do about it; "" if there is none.
func HintOf(err error) string {
	if hinted, ok := errors.AsType[*Error](err); ok {
		return hinted.Hint
	}
	return ""
}

// Strerror describes an error number as C libraries do: their texts begin with a capital letter,
// Go's do not.
func Strerror(no syscall.Errno) string {
	text := no.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// NoSpace reports whether err says that a file system, a quota or a limit has no room left
// (write(2)).
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// Number describes a malformed number in our own words instead of strconv's.
func Number(err error) string {
	bad, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case !ok:
		return err.Error()
	case errors.Is(bad.Err, strconv.ErrRange):
		return "the number is out of range"
	case bad.Func == "ParseBool":
		return "want true or false"
	case bad.Func == "ParseFloat":
		return "want a number"
	case bad.Func == "ParseUint":
		return "want a whole number from 0"
	}
	return "want a whole number"
}

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
