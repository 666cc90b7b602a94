package expand

import (
	"cmp"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/fleet/remotesh"
)

// maxLine bounds a command, in bytes: the login shell gets it as one argument.
const maxLine = 127 << 10

// Text replaces the tokens of a text that no shell reads, such as the name of a file.
func (v *Values) Text(text string, h host.Host) string {
	own := v.of[h.Endpoint()]
	return Replace(text, func(token string) (string, bool) { value, known := own[token]; return value, known })
}

// Path replaces the tokens in the path of a directory here. Each value becomes one name or a part
// of one, which leads nowhere else: values of inventories need not be trusted. An empty one is %.
func (v *Values) Path(text string, h host.Host) string {
	own := v.of[h.Endpoint()]
	return Replace(text, func(token string) (string, bool) {
		value, known := own[token]
		return cmp.Or(output.FileName(value), "%"), known
	})
}

// line replaces the tokens of a command for a POSIX shell, each by one word or a part of one.
// Within quotes only a value that means nothing to a shell is right. special: other shells may read
// a value otherwise.
func (v *Values) line(command string, h host.Host) (line string, special bool, err error) {
	var b strings.Builder
	own, at := v.of[h.Endpoint()], 0
	for before, token := range split(command) {
		b.WriteString(before)
		at += len(before)
		switch value := own[token]; {
		case token == "" || token == "%":
			b.WriteString(token)
		case bare(command[:at]):
			b.WriteString(shell.Quote(value))
			special = special || shell.Word(value) != value
		case shell.Word(value) != value:
			err = fault.Usage("write the token outside of quotes: each value is quoted as one word", "a value that is empty or has special characters stands within quotes, or behind ` or << of the command")
		default:
			b.WriteString(value)
		}
		at += len("%") + len(token)
	}
	if b.Len() > maxLine {
		err = fault.Usage("give long values to a script: --script FILE has them in its environment", "the command is longer than 127 KiB")
	}
	return b.String(), special, err
}

// bare reports whether a POSIX shell is outside of all quotes after the beginning of a command. In
// doubt it is not.
func bare(command string) bool {
	quote := byte(0)
	for i := 0; i < len(command); i++ {
		rest := command[i+1:]
		switch c := command[i]; {
		case quote == '\'':
			if c == quote {
				quote = 0
			}
		case c == '`', c == '\\' && rest == "", c == '$' && rest == "":
			return false
		case c == '\\':
			i++
		case c == '$' && quote == '"' && strings.IndexByte("({", rest[0]) >= 0:
			return false
		case c == '"' && quote == '"':
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		case c == '$' && (rest[0] == '\'' || strings.HasPrefix(rest, "((")), c == '<' && strings.HasPrefix(rest, "<"):
			return false
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;&|()<>", command[i-1]) >= 0):
			return false
		}
	}
	return quote == 0
}

// Check refuses a command that cannot be made for all hosts.
func (v *Values) Check(hosts []host.Host, command string) error {
	var wrong problems
	for _, h := range hosts {
		_, _, err := v.line(command, h)
		wrong.add(err, h)
	}
	return wrong.err()
}

// Shown returns the command of a host, or the arguments of a script, for people.
func (v *Values) Shown(command string, h host.Host) string {
	if v.script != nil {
		return v.Text(command, h)
	}
	line, _, _ := v.line(command, h) // Check has seen it
	return line
}

// Command returns the function of an Executor: the command with its tokens replaced, or the script
// with arguments.
func (v *Values) Command(args []string) func(fleet.Command, host.Host) fleet.Command {
	return func(cmd fleet.Command, h host.Host) fleet.Command {
		program, special, _ := v.line(cmd.Line, h) // Check has seen it
		if v.script != nil {
			program = v.program(args, h)
		} else if !special {
			cmd.Line = program
			return cmd
		}
		line, head := remotesh.Command(program)
		cmd.Line, cmd.Input = line, fleet.Prefixed{Head: head, Input: cmd.Input}
		return cmd
	}
}

// program returns the program that runs the script.
func (v *Values) program(args []string, h host.Host) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = v.Text(arg, h)
	}
	program, _ := remotesh.Script(v.script, words) // the caller has tried it
	return v.environment(h) + program
}

// environment returns the beginning of a program, which sets the variables that a script names. No
// others are sent: one may be a secret.
func (v *Values) environment(h host.Host) string {
	own := v.of[h.Endpoint()]
	var b strings.Builder
	for _, l := range letters {
		b.WriteString("export " + l.name + "=" + shell.Quote(own[l.token]) + "; ")
	}
	for _, name := range v.named {
		b.WriteString("export " + variablePrefix + name + "=" + shell.Quote(own["{"+name+"}"]) + "; ")
	}
	return b.String()
}
