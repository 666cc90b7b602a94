package cli

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"

	"sshpace/internal/fleet"
)

// maxScript bounds a local script; it is held in memory.
const maxScript = 16 << 20

// interpreters are those that read a program from standard input, and the
// words that make them do so.
var interpreters = map[string][]string{
	"sh": {"-s", "--"}, "bash": {"-s", "--"}, "dash": {"-s", "--"}, "ash": {"-s", "--"}, "ksh": {"-s", "--"}, "zsh": {"-s", "--"},
	"python": {"-"}, "python3": {"-"}, "perl": {"-"}, "ruby": {"-"},
}

// scriptCommand sends a local script through standard input, so that nothing
// is left on the hosts. Its first line decides what runs it; without one, sh.
func scriptCommand(file string, args []string) (fleet.Command, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxScript {
		err = fmt.Errorf("script %s is larger than %d bytes", file, maxScript)
	}
	if err != nil {
		return fleet.Command{}, &Error{Err: err, Hint: "give a readable script to --script", Code: ExitUsage}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fleet.Command{}, &Error{Err: err, Hint: "give a readable script to --script", Code: ExitUsage}
	}
	words, err := interpreter(data)
	if err != nil {
		return fleet.Command{}, err
	}
	for _, a := range args {
		words = append(words, quoteWord(a))
	}
	return fleet.Command{Line: strings.Join(words, " "), Input: fleet.SpoolBytes(data)}, nil
}

// interpreter reads the #! line.
func interpreter(script []byte) ([]string, error) {
	line, _, _ := bytes.Cut(script, []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return []string{"sh", "-s", "--"}, nil
	}
	fields := strings.Fields(string(rest))
	if len(fields) > 1 && path.Base(fields[0]) == "env" {
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return []string{"sh", "-s", "--"}, nil
	}
	flags, known := interpreters[path.Base(fields[0])]
	if !known {
		return nil, usageError("copy the script to the hosts, or write it for sh, bash, python3 or perl",
			"%s cannot run a script from standard input", fields[0])
	}
	words := []string{quoteWord(fields[0])}
	for _, f := range fields[1:] { // such as -e
		words = append(words, quoteWord(f))
	}
	return append(words, flags...), nil
}

// quoteWord protects a word from any login shell.
func quoteWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=:,@+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
