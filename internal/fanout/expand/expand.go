// Package expand replaces tokens such as %h and %{name} by what they mean for a host: in commands,
// in names of files, and as the environment of scripts. It knows no source of variables but the
// user's flags.
package expand

import (
	"context"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// split cuts a text before each token, which is returned without its %: "h", "%" or "{name}"; ""
// at the end.
func split(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for {
			before, after, _ := strings.Cut(text, "%")
			if after == "" {
				yield(text, "")
				return
			}
			_, size := utf8.DecodeRuneInString(after)
			if end := strings.IndexByte(after, '}'); after[0] == '{' && end > 0 {
				size = end + 1
			}
			if !yield(before, after[:size]) {
				return
			}
			text = after[size:]
		}
	}
}

// Replace replaces %% by %, and each token that has a value; all others stay.
func Replace(text string, value func(token string) (text string, known bool)) string {
	var b strings.Builder
	for before, token := range split(text) {
		b.WriteString(before)
		if token == "" || token == "%" {
			b.WriteString(token)
		} else if v, known := value(token); known {
			b.WriteString(v)
		} else {
			b.WriteString("%" + token)
		}
	}
	return b.String()
}

// Name replaces %h by the name of a host, and %% by %.
func Name(text, host string) string {
	return Replace(text, func(token string) (string, bool) { return host, token == "h" })
}

// Varies reports whether a text has tokens, so that it differs from host to host.
func Varies(text string) bool {
	for _, token := range split(text) {
		if token != "" && token != "%" {
			return true
		}
	}
	return false
}

// formatters are programs in whose formats %h is something else.
var formatters = []string{"date", "find", "git", "printf", "rpm", "stat"}

// MeansHost reports whether %h in a command seems to mean the name of a host.
func MeansHost(command string) bool {
	words := strings.FieldsFunc(command, func(r rune) bool { return !unicode.IsLetter(r) })
	return Name(command, "x") != Name(command, "y") && !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(formatters, word) })
}

// Executor runs a command of its own on each host.
type Executor struct {
	fleet.Executor
	Of func(fleet.Command, host.Host) fleet.Command
}

// Execute calls the inner Executor with the host's own command.
func (e Executor) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	return e.Executor.Execute(ctx, h, e.Of(cmd, h), a)
}

// ByName makes a command whose %h is the name of the host. Names have no character that means
// anything to a shell.
func ByName(cmd fleet.Command, h host.Host) fleet.Command {
	cmd.Line = Name(cmd.Line, h.Name)
	return cmd
}
