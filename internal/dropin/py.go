package dropin

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"unicode/utf8"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/sys/file"
)

// pyVersion is the version of mpssh.py whose behavior we promise.
const pyVersion = "1.2"

// pySSH is one call of mpssh.py. Its promise: options, header, lines, cutting, removal of control
// characters, exit messages, summary and exit code are those of mpssh.py. Knowingly different: the
// default delay of 50 ms gives way to our own pacing (an explicit --delay is kept), children have
// an empty standard input and no terminal to ask on, and names that ssh would take for options or
// that a shell could misread are refused per host.
type pySSH struct {
	File       string
	Delay      int  // ms, -1 = not given
	ZeroExit   bool // also print exit code 0
	IgnoreExit bool // do not print 1-254
	BadCharsOK bool // do not remove control characters
	Silent     bool // do not show how many were removed
	Procs      int
	User       string
	MaxLen     int      // bytes
	SSHBin     string   // "" = not given
	SSHOpts    []string // without the leading dash, the default one first
	NoHeader   bool
	Verbose    bool
	Debug      bool // accepted, shows nothing more
	Command    string
}

const pyUsage = `usage: mpssh.py [-h] -f FILE [-d MSEC] [-e] [-E] [-b] [-B] [-p NPROC]
                [-u USER] [-l CHARS] [-S SSHBIN] [-O SSHOPT] [-H] [-v] [-D]
                [-V]
                command
`

const pyHelp = pyUsage + `
Runs a command on many hosts at once through SSH (a mode of sshpace).

  command               the command to run
  -h, --help            this text
  -f, --file FILE       file with one host a line; empty lines and # are skipped
  -d, --delay MSEC      delay between two starts (default: as the servers bear)
  -e, --zeroexit        print exit code 0, too
  -E, --ignexit         do not print exit codes other than 0
  -b, --badchars-ok     do not remove control characters
  -B, --silent-badchars do not tell how many were removed
  -p, --procs NPROC     hosts at the same time (default: 100)
  -u, --user USER       login name (default: your own)
  -l, --maxlen CHARS    longer lines are cut (default: 80)
  -S, --sshbin SSHBIN   start this program instead
  -O, --sshopt SSHOPT   option for ssh without the leading dash; may be repeated
  -H, --noheader        print output only
  -v, --verbose         say more
  -D, --debug           accepted for compatibility
  -V, --version         print the version
`

var pyProgram = program{
	parse:       func(_ Env, args []string) (call, error) { return parsePy(args) },
	usage:       func(env Env, text string) { fmt.Fprintf(env.Stderr, "%smpssh.py: error: %s\n", pyUsage, text) },
	misuse:      exitUsage,
	said:        func(_ Env, text string) string { return "mpssh.py: error: " + text },
	interrupted: exitFailed,
	stopped:     "\nERROR: Terminated by CTRL+C! Cleaning up, wait a few seconds.\n\n",
}

// parsePy reads the arguments after the program's name.
func parsePy(args []string) (*pySSH, error) {
	p := &pySSH{Delay: -1, Procs: 100, MaxLen: 80, SSHOpts: []string{"o NumberOfPasswordPrompts=0"}}
	words, err := parseMixed([]option{
		insteadOption("h", "help", pyHelp), textOption("f", "file", &p.File), pyNumber("d", "delay", &p.Delay),
		flagOption("e", "zeroexit", &p.ZeroExit), flagOption("E", "ignexit", &p.IgnoreExit),
		flagOption("b", "badchars-ok", &p.BadCharsOK), flagOption("B", "silent-badchars", &p.Silent),
		pyNumber("p", "procs", &p.Procs), textOption("u", "user", &p.User), pyNumber("l", "maxlen", &p.MaxLen),
		textOption("S", "sshbin", &p.SSHBin), listOption("O", "sshopt", &p.SSHOpts), flagOption("H", "noheader", &p.NoHeader),
		flagOption("v", "verbose", &p.Verbose), flagOption("D", "debug", &p.Debug), insteadOption("V", "version", "MPSSH.py "+pyVersion+"\n"),
	}, args)
	if err != nil {
		return nil, err
	}
	return p, p.check(words)
}

// pyNumber is a numeric option with the error messages of Python's argparse.
func pyNumber(short, long string, to *int) option {
	return option{short: short, long: long, set: func(v string) error {
		n, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil {
			return &errUsage{fmt.Sprintf("argument -%s/--%s: invalid int value: %s", short, long, pythonString(v))}
		}
		*to = n
		return nil
	}}
}

func (p *pySSH) check(args []string) error {
	var missing []string
	if p.File == "" {
		missing = append(missing, "-f/--file")
	}
	if len(args) == 0 {
		missing = append(missing, "command")
	}
	switch {
	case len(missing) > 0:
		return &errUsage{"the following arguments are required: " + strings.Join(missing, ", ")}
	case len(args) > 1:
		return &errUsage{"unrecognized arguments: " + strings.Join(args[1:], " ")}
	case p.MaxLen < 1:
		return &errUsage{"argument -l/--maxlen: must be at least 1"}
	case p.Procs < 1:
		return &errUsage{"argument -p/--procs: must be at least 1"}
	}
	p.Command = args[0]
	return nil
}

// run runs the command. It returns an error only if the run itself could not be done; the results
// of the hosts are in the output.
func (p *pySSH) run(ctx context.Context, env Env) (int, error) {
	names, err := p.hosts()
	if err != nil {
		return exitOK, err
	}
	if p.User == "" {
		p.User = env.User
	}
	if err := p.header(env, len(names)); err != nil {
		return exitOK, err
	}
	var hosts []host.Host
	for _, name := range names {
		hosts = append(hosts, splitTarget(p.User+"@"+name))
	}
	w, err := p.work(env, hosts)
	if err != nil {
		return exitOK, err
	}
	sink := newPySink(p, env, names)
	if _, err = w.run(ctx, fanout.Params{Fanout: p.Procs}, hosts, sink); err != nil || p.NoHeader {
		return exitOK, err
	}
	_, err = fmt.Fprintf(env.Stdout, "\n  Done. %d hosts processed (ok/non-ok/ssh-failed = %d/%d/%d).\n",
		sink.ok+sink.nonOK+sink.failed, sink.ok, sink.nonOK, sink.failed)
	return exitOK, err
}

// hosts reads the hosts file.
func (p *pySSH) hosts() ([]string, error) {
	text, err := file.ReadFile(p.File, file.List)
	var names []string
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); name != "" && name[0] != '#' {
			names = append(names, name)
		}
	}
	return names, err
}

func (p *pySSH) header(env Env, hosts int) error {
	if p.NoHeader {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "MPSSH.py - Mass parallel SSH in Python (Version %s)\n(c) 2013 Ivan Zahariev <famzah>\n\n", pyVersion)
	fmt.Fprintf(&b, "  [*] read (%d) hosts from the list\n", hosts)
	fmt.Fprintf(&b, "  [*] executing \"%s\" as user \"%s\"\n", p.Command, p.User)
	if p.Verbose {
		fmt.Fprintf(&b, "  [*] SSH binary : %s\n", p.binary())
		fmt.Fprintf(&b, "  [*] SSH options: %s\n", pythonList(p.dashed()))
	}
	fmt.Fprintf(&b, "  [*] spawning %d parallel SSH sessions\n\n", min(p.Procs, hosts))
	_, err := env.Stdout.Write(env.safe(fleet.Stdout, []byte(b.String())))
	return err
}

// binary returns the program that -v names: that of -S, or the ssh that would be found.
func (p *pySSH) binary() string {
	if p.SSHBin != "" {
		return p.SSHBin
	}
	if path, err := exec.LookPath("ssh"); err == nil {
		return path
	}
	return "/usr/bin/ssh"
}

func (p *pySSH) dashed() []string {
	var opts []string
	for _, o := range p.SSHOpts {
		opts = append(opts, "-"+o)
	}
	return opts
}

// work returns the command on the program of -S with the argument list of the original, or on our
// engine.
func (p *pySSH) work(env Env, hosts []host.Host) (w work, err error) {
	if p.SSHBin == "" {
		w, err = env.engine(p.dashed(), hosts)
	} else {
		w.engine, w.stop = forkssh.New(forkssh.Options{Binary: p.SSHBin, Argv: func(h host.Host, command string) []string {
			return append(p.dashed(), h.User+"@"+h.Name, command)
		}}), nothing
	}
	w.engine, w.command.Line = withDelay(w.engine, p.Delay), p.Command
	return w, err
}

// splitTarget cuts USER@HOST as ssh does, at the last @. The parts are checked by the engine, host
// by host.
func splitTarget(target string) host.Host {
	i := strings.LastIndexByte(target, '@')
	return host.Host{User: target[:i], Name: target[i+1:]}
}

// pythonList writes a list of strings as Python's repr does.
func pythonList(list []string) string {
	var quoted []string
	for _, s := range list {
		quoted = append(quoted, pythonString(s))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// pythonString prefers single quotes, unless only those occur inside.
func pythonString(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for i, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && s[i] != 0xef:
			fmt.Fprintf(&b, `\udc%02x`, s[i]) // a byte outside UTF-8
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
