package openssh

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/sys/file"
)

// script is a shell script that starts ssh. Only lists of simple commands are read, so that it is
// certain which ones run. Everything else makes the source unknown.
type script struct {
	*source
	ctx  context.Context
	path string
	set  map[string]string // variables
}

// Tokens of the shell (sh(1)): a redirection, the end of a command, or a word. Quotes in quotes,
// parentheses, braces, conditions and substitutions match nothing.
const (
	shellVariable = `\$(?:\w+|[@*#?$!]|\{\w+(?::-[^{}$'"\\` + "`" + `]*)?\})`
	shellWord     = `(?:[^\s;&|<>(){}'"\\$` + "`" + `]|` + shellVariable + `|'[^']*'|"(?:[^'"\\$` + "`" + `]|\\[^"\\$` + "`" + `]|` + shellVariable + `)*")+`
)

var (
	shellToken = wildcard.Regexp(`^(?:[ \t\r]|\\\n|#[^\n]*)*(?:[0-9]*[<>]>?&?[ \t]*` + shellWord + `|([;&|\n])|(` + shellWord + `))`)
	assignment = wildcard.Regexp(`^[A-Za-z_]\w*=`)
)

// read reads the first line of a script, and the rest.
func (s *script) read(text string) error {
	first, rest, _ := strings.Cut(text, "\n")
	words := strings.Fields(strings.TrimPrefix(first, "#!"))
	if len(words) == 2 && filepath.Base(words[0]) == "env" {
		words = []string{s.find(words[1])}
	}
	startup := slices.ContainsFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "BASH_") })
	if len(words) != 1 || startup || !slices.Contains([]string{"sh", "bash", "dash"}, filepath.Base(words[0])) {
		return errUnknown
	}
	s.needs = append(s.needs, words[0])
	return s.commands(rest)
}

func (s *script) commands(text string) error {
	var words []string
	for text += "\n"; text != ""; {
		found := shellToken().FindStringSubmatch(text)
		if found == nil {
			return errUnknown
		}
		text = text[len(found[0]):]
		switch end, word := found[1], found[2]; {
		case word != "":
			words = append(words, word)
		case end == "\n" || end != "" && len(words) > 0: // two operators would be a condition
			if err := s.command(words); err != nil {
				return err
			}
			words = nil
		case end != "":
			return errUnknown
		}
	}
	return nil
}

// never is in a value that is known only while the script runs, and in no path.
const never = "\x00"

// command reads a command without its redirections. Of arguments, the variables count.
func (s *script) command(words []string) error {
	export := len(words) > 0 && words[0] == "export"
	alone := export || !slices.ContainsFunc(words, func(word string) bool { return !assignment().MatchString(word) })
	for ; len(words) > 0 && (export || assignment().MatchString(words[0])); words = words[1:] {
		name, value, given := strings.Cut(words[0], "=")
		switch {
		case redirects(name):
			return errUnknown
		case !alone:
			s.set[name] = never
		case given:
			s.set[name] = s.value(value)
		}
	}
	for len(words) > 0 && (words[0] == "exec" || words[0] == "command") {
		words = words[1:]
	}
	for i, word := range words {
		words[i] = s.value(word)
	}
	if len(words) == 0 {
		return nil
	}
	switch name := words[0]; {
	case slices.Contains([]string{"echo", "printf", "true", ":", "set", "shift", "umask", "ulimit"}, name):
		return nil
	case slices.Contains([]string{"alias", "cd", "getopts", "hash", "read"}, name): // not the programs of that name
		return errUnknown
	case len(words) == 2 && (name == "." || name == "source"):
		return s.include(words[1])
	default:
		return s.add(s.ctx, s.find(name))
	}
}

// include reads a file of further commands.
func (s *script) include(path string) error {
	if !filepath.IsAbs(path) || slices.Contains(s.needs, path) {
		return errUnknown
	}
	s.needs = append(s.needs, path)
	text, err := file.ReadFile(path, maxKept)
	if err != nil {
		return err
	}
	s.keepSum(path, text)
	return s.commands(string(text))
}

// find finds a program as the shell does. A program that comes into an earlier directory of PATH is
// another answer.
func (s *script) find(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, directory := range filepath.SplitList(s.variable("PATH")) {
		path := filepath.Join(directory, name)
		if !filepath.IsAbs(path) {
			break
		}
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path
		}
		s.perhaps = append(s.perhaps, path)
	}
	return never
}

// value expands a word.
func (s *script) value(word string) string {
	parts := strings.Split(word, "'")
	for i := 0; i < len(parts); i += 2 { // outside single quotes
		parts[i] = os.Expand(strings.ReplaceAll(parts[i], `"`, ""), s.variable)
	}
	return strings.Join(parts, "")
}

// variable returns the value of a variable of the script or the environment.
func (s *script) variable(name string) string {
	name, instead, _ := strings.Cut(name, ":-")
	switch value, set := s.set[name]; {
	case name == "0":
		return s.path
	case set:
		return cmp.Or(value, instead)
	case name == "PWD" || !assignment().MatchString(name+"="):
		return never
	}
	s.perhaps = append(s.perhaps, "$"+name)
	return cmp.Or(os.Getenv(name), instead, never)
}
