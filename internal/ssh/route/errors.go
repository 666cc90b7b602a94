package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/ssh/conf"
)

// IsConfigError reports whether err is a mistake in files, options or flags.
func IsConfigError(err error) bool {
	_, mistake := errors.AsType[*conf.ConfigError](err)
	_, refused := errors.AsType[*conf.RefusedError](err)
	return mistake || refused || IsJumpsError(err)
}

// ConfigError adds a remedy to a mistake in the configuration.
func ConfigError(err error) error {
	if _, ok := errors.AsType[*conf.RefusedError](err); ok {
		return &fault.Error{Err: err, Hint: "correct that option or line; ssh -G HOST shows the same", Code: fault.Misuse}
	}
	if jumps, ok := errors.AsType[*jumpsError](err); ok {
		return &fault.Error{Err: err, Hint: jumps.Hint(), Code: fault.Misuse}
	}
	mistake, ok := errors.AsType[*conf.ConfigError](err)
	if !ok {
		return err
	}
	hint := "correct that line; ssh itself refuses the file, too"
	if mistake.Origin.Source == conf.FromFlag {
		hint = "correct the flag; it means the same as with ssh"
	}
	return &fault.Error{Err: err, Hint: hint, Code: fault.Misuse}
}

// ResolveError adds a remedy for a host whose configuration does not work.
func ResolveError(err error, name string) error {
	if IsConfigError(err) {
		return ConfigError(err)
	}
	return fault.WithHint(err, "correct the configuration, or see what ssh says to: ssh -G "+shell.Word(name))
}

// jumpsError is a route through more jump hosts than anybody has: usually they refer to each other,
// and ssh would start processes without end.
type jumpsError struct {
	path []string // from the host outwards
	by   conf.Keyword
}

func (e *jumpsError) Error() string {
	for i, name := range e.path {
		if first := slices.Index(e.path, name); first < i {
			return e.by.String() + " goes in a circle: " + strings.Join(e.path[first:i+1], " -> ")
		}
	}
	return fmt.Sprintf("more than %d jump hosts before %s: %s", maxJumps, e.path[0], strings.Join(e.path[1:], " -> "))
}

// Hint suggests a remedy.
func (e *jumpsError) Hint() string {
	return "correct ProxyJump or ProxyCommand, such as with \"ProxyJump none\" for the jump host; sshpace config HOST shows which line sets it"
}

// IsJumpsError reports whether err is about the jump hosts of a configuration.
func IsJumpsError(err error) bool {
	_, ok := errors.AsType[*jumpsError](err)
	return ok
}
