package dropin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/fleet/remotesh"
	"sshpace/internal/sys/file"
)

// mpsshVersion is the version of mpssh whose behavior we promise.
const mpsshVersion = "1.4-dev"

// mpssh is one call of the C program mpssh. Its promise: options, hosts file, labels, prefixes,
// streams, per-host files, header on a terminal, exit code. Knowingly different: an unknown host
// key is never trusted silently (-s accepts and records it, and a changed key still stops that
// host); lines and commands may have any length and a thousand hosts is no limit; remote text is
// cleaned on a terminal; the script of -r goes over the same connection and leaves no file behind;
// per-host files are 0600.
type mpssh struct {
	Blind       bool
	Delay       int // ms, 0 = none
	PrintExit   bool
	NoErr       bool
	Identity    string // private key file, "" = not given
	File        string // "" = ~/.mpssh/hosts, "-" = standard input
	Label       string
	OutDir      string
	NoOut       bool
	Procs       int
	Quiet       bool
	Script      string
	NoKeyCheck  bool
	ConnTimeout int // seconds
	User        string
	Verbose     bool
	Command     string
}

const mpsshHelp = `
usage: mpssh [option]... command
       mpssh [option]... -r script

Runs a command on many hosts at once through SSH (a mode of sshpace).

  -b, --blind         no remote output
  -d, --delay=MSEC    delay between two starts (default: as the servers bear)
  -e, --exit          print the exit code of the remote command
  -E, --no-err        leave out standard error
  -f, --file=FILE     file with hosts, or - for stdin (default ~/.mpssh/hosts)
  -h, --help          this text
  -i, --identity=FILE log in with the private key in this file
  -l, --label=LABEL   only hosts under this label
  -o, --outdir=DIR    save remote output in this directory
  -O, --no-out        leave out standard output
  -p, --procs=NPROC   hosts at the same time (default 100)
  -q, --quiet         no messages of ssh itself
  -r, --script=FILE   run this local script
  -s, --nokeychk      accept and record unknown host keys
  -t, --conntmout=SEC connect timeout (default 30)
  -u, --user=USER     login name
  -v, --verbose       show login names
  -V, --version       print the version

`

// mpsshProgram has exit code 0 also after a mistake in the arguments, as the original.
var mpsshProgram = program{
	parse:       func(_ Env, args []string) (call, error) { return parseMpssh(args) },
	usage:       func(env Env, text string) { fmt.Fprintf(env.Stdout, "\n   *** %s\n\n", text) },
	said:        func(_ Env, text string) string { return "mpssh: " + text },
	interrupted: exitInterrupted,
}

// parseMpssh reads the arguments after the program's name.
func parseMpssh(args []string) (*mpssh, error) {
	m := &mpssh{ConnTimeout: 30}
	words, err := parseMixed([]option{
		flagOption("b", "blind", &m.Blind), mpsshNumber("d", "delay", &m.Delay), flagOption("e", "exit", &m.PrintExit),
		flagOption("E", "no-err", &m.NoErr), once("f", "file", "filename", &m.File), insteadOption("h", "help", mpsshHelp),
		textOption("i", "identity", &m.Identity), textOption("l", "label", &m.Label), once("o", "outdir", "output dir", &m.OutDir),
		flagOption("O", "no-out", &m.NoOut), mpsshNumber("p", "procs", &m.Procs), flagOption("q", "quiet", &m.Quiet),
		textOption("r", "script", &m.Script), flagOption("s", "nokeychk", &m.NoKeyCheck), mpsshNumber("t", "conntmout", &m.ConnTimeout),
		once("u", "user", "username", &m.User), flagOption("v", "verbose", &m.Verbose), insteadOption("V", "version", "mpssh-"+mpsshVersion+"\n"),
	}, args)
	if err != nil {
		return nil, err
	}
	if m.Procs == 0 {
		m.Procs = 100
	}
	return m, m.check(words)
}

// once is an option that may be given once.
func once(short, long, about string, to *string) option {
	return option{short: short, long: long, set: func(v string) error {
		if *to != "" {
			return &errUsage{"one " + about + " allowed"}
		}
		*to = v
		return nil
	}}
}

// mpsshNumber is a numeric option, for which the original accepts any text.
func mpsshNumber(short, long string, to *int) option {
	return option{short: short, long: long, set: func(v string) error {
		n, err := strconv.ParseInt(v, 0, 32)
		if err != nil {
			return &errUsage{fmt.Sprintf("-%s: %q is not a number that fits", short, v)}
		}
		*to = int(n)
		return nil
	}}
}

func (m *mpssh) check(args []string) error {
	switch {
	case m.Delay < 0:
		return &errUsage{"delay can't be negative"}
	case m.Procs < 0:
		return &errUsage{"bad numproc"}
	case m.Script != "" && len(args) > 0:
		return &errUsage{"can't use remote command when executing local script"}
	case m.Script != "":
		return m.checkScript()
	case len(args) > 1:
		return &errUsage{"too many arguments"}
	case len(args) < 1:
		return &errUsage{"command missing, use -h for help"}
	}
	m.Command = args[0]
	return nil
}

func (m *mpssh) checkScript() error {
	info, err := os.Stat(m.Script)
	if err != nil {
		return &errUsage{"can't stat script file"}
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return &errUsage{"script file is not executable"}
	}
	return nil
}

// run runs the command. It returns an error only if the run itself could not be done.
func (m *mpssh) run(ctx context.Context, env Env) (int, error) {
	if m.User == "" {
		m.User = env.User
	}
	hosts, err := m.readHosts(env)
	if err != nil {
		return exitOK, err
	}
	if m.NoKeyCheck {
		fmt.Fprintln(env.Stderr, "mpssh: -s: unknown host keys are accepted and recorded; a changed key still stops its host")
	}
	sink, err := m.sink(env, hosts)
	if err != nil {
		return exitOK, err
	}
	if err := m.header(env, len(hosts)); err != nil {
		return exitOK, err
	}
	var w work
	if w.command, err = m.command(); err != nil {
		return exitOK, err
	}
	if w.engine, w.stop, err = env.Engine(m.sshArgs(), hosts); err != nil {
		return exitOK, err
	}
	w.engine = withDelay(w.engine, m.Delay)
	params := fanout.Params{Fanout: min(m.Procs, len(hosts)), ReservedFDs: output.DefaultOpenFiles}
	if m.OutDir != "" { // the original stops when the disk is full
		params.MaxOutput = fanout.DefaultMaxOutput
	}
	summary, err := w.run(ctx, params, hosts, sink)
	if err != nil || !env.StdoutTTY {
		return exitOK, err
	}
	_, err = fmt.Fprintf(env.Stdout, "\n  Done. %d hosts processed.\n", summary.Total())
	return exitOK, err
}

// sshArgs returns the options that mpssh gives to ssh.
func (m *mpssh) sshArgs() []string {
	strict := "yes"
	if m.NoKeyCheck {
		strict = "accept-new"
	}
	args := []string{"-oNumberOfPasswordPrompts=0", "-oStrictHostKeyChecking=" + strict, "-oConnectTimeout=" + strconv.Itoa(m.ConnTimeout)}
	if m.Identity != "" {
		args = append(args, "-i"+m.Identity)
	}
	return args
}

// command returns the remote command, or one that reads the script from its input, runs it in the
// home directory under its own name and removes it.
func (m *mpssh) command() (fleet.Command, error) {
	if m.Script == "" {
		return fleet.Command{Line: m.Command}, nil
	}
	data, err := os.ReadFile(m.Script)
	if err != nil {
		return fleet.Command{}, err
	}
	name := shell.Word(filepath.Base(m.Script))
	line, input := remotesh.Command(`d=$(mktemp -d) && cat >"$d"/` + name + ` && chmod 700 "$d"/` + name + ` && "$d"/` + name + ` </dev/null; r=$?; rm -rf "$d"; exit $r`)
	return fleet.Command{Line: line, Input: fleet.SpoolBytes(append(input, data...))}, nil
}

func (m *mpssh) header(env Env, hosts int) error {
	if !env.StdoutTTY {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "MPSSH - Mass Parallel Ssh Ver.%s\n(a mode of sshpace)\n\n", mpsshVersion)
	fmt.Fprintf(&b, "  [*] read (%d) hosts from the list\n", hosts)
	if m.Script != "" {
		fmt.Fprintf(&b, "  [*] uploading and executing the script \"%s\" as user \"%s\"\n", m.Script, m.User)
	} else {
		fmt.Fprintf(&b, "  [*] executing \"%s\" as user \"%s\"\n", m.Command, m.User)
	}
	for _, note := range []struct {
		on   bool
		text string
	}{
		{m.Label != "", fmt.Sprintf("only on hosts labeled \"%s\"", m.Label)},
		{m.NoKeyCheck, "unknown host keys are accepted"},
		{m.Blind, "blind mode enabled"},
		{m.Verbose, "verbose mode enabled"},
		{m.OutDir != "", "using output directory : " + m.OutDir},
		{true, fmt.Sprintf("spawning %d parallel ssh sessions", min(m.Procs, hosts))},
	} {
		if note.on {
			b.WriteString("  [*] " + note.text + "\n")
		}
	}
	_, err := env.Stdout.Write(termsafe.Text([]byte(b.String() + "\n")))
	return err
}

var errNoneListed = bare{errors.New("host list file empty, does not exist or no valid entries")}

func (m *mpssh) readHosts(env Env) ([]host.Host, error) {
	name, in := m.File, env.Stdin
	switch name {
	case "-":
		name = "stdin"
	default:
		if name == "" {
			name = filepath.Join(env.Home, ".mpssh", "hosts")
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	if m.Verbose {
		fmt.Fprintf(env.Stdout, "Reading hosts from : %s\n", termsafe.Line(name))
	}
	hosts, err := m.parseHosts(file.Reader(in, name, file.List), name, env.Stderr)
	if err == nil && len(hosts) == 0 {
		err = errNoneListed
	}
	return hosts, err
}

// parseHosts reads `[user@]host[:port]` lines under `%label` lines. A line ends at the first
// character that none of them can have, so that comments and blank lines vanish; hosts before any
// label belong to all of them.
func (m *mpssh) parseHosts(in io.Reader, name string, warn io.Writer) ([]host.Host, error) {
	var hosts []host.Host
	label := ""
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := mpsshWord(lines.Text())
		if rest, ok := strings.CutPrefix(text, "%"); ok {
			label = rest
			continue
		}
		if text == "" || m.Label != "" && label != "" && label != m.Label {
			continue
		}
		h, err := host.Parse(text)
		if err != nil {
			fmt.Fprintf(warn, "mpssh: %s\n", termsafe.Line(fmt.Sprintf("%s:%d: %s", name, n, err)))
			continue
		}
		if h.User == "" {
			h.User = m.User
		}
		h.Label, h.Origin = label, name+":"+strconv.Itoa(n)
		hosts = append(hosts, h)
	}
	return hosts, lines.Err()
}

func mpsshWord(line string) string {
	for i := range len(line) {
		c := line[i]
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("-.@:%", c) >= 0) {
			return line[:i]
		}
	}
	return line
}
