package dropin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/file"
)

// psshVersion is the version of pssh whose behavior we promise.
const psshVersion = "2.3.4"

// pssh is one call of a program of the package pssh. Its promise: options, the variables PSSH_*,
// lines, directories of -o and -e, and exit codes. Knowingly different: an unknown host key is
// never trusted silently; a wrong password is tried on one host; hosts whose names or ports ssh
// could misread are refused before anything runs; directories of -o and -e must be out of others'
// reach, and their files are 0600; nothing is compressed; a command that -t or Ctrl-C ends is ended
// on the host, too; on a terminal remote text is cleaned.
type pssh struct {
	tool psshTool

	HostFiles, HostStrings []string
	Glob                   string
	User                   string
	Par                    int
	Timeout                int // seconds, 0 = none
	OutDir, ErrDir         string
	Options                []string // of ssh_config
	Extra                  []string // arguments of ssh or scp
	AskPass, Verbose       bool
	Inline, InlineStdout   bool
	Print, SendInput       bool
	Recursive              bool
	LocalDir               string
	Archive, Compress      bool   // of rsync
	SSHArgs                string // of the ssh that rsync starts
	Args                   []string

	hosts []psshHost
}

// psshTool is a program of the package.
type psshTool struct {
	usage, example string
	timeout        int
	own            func(p *pssh) []option
	help           string // of its own options
	check          func(p *pssh) string
	failed         int // exit code where a command ended with another code than 0 and 255
	prepare        func(p *pssh, env Env) (work, error)
}

// program returns the tool under a name.
func (t psshTool) program(name string) program {
	usage := "Usage: " + name + " [OPTIONS] " + t.usage + "\n\n"
	return program{
		parse: func(env Env, args []string) (call, error) {
			return t.parse(fmt.Sprintf("%s%s%s\nExample: %s\n", usage, psshHelp, t.help, t.example), args, env.Getenv)
		},
		usage:  func(env Env, text string) { fmt.Fprintf(env.Stderr, "%s%s: error: %s\n", usage, name, text) },
		misuse: exitUsage,
		said:   func(_ Env, text string) string { return text },
	}
}

// parse reads variables and arguments.
func (t psshTool) parse(help string, args []string, getenv func(string) string) (*pssh, error) {
	p := &pssh{tool: t, Par: 32, Timeout: t.timeout}
	options := append(p.common(), t.own(p)...)
	err := fromEnvironment(p, options, getenv)
	if err != nil {
		return nil, err
	}
	p.Args, err = parseOptions(append(options, insteadOption("", "help", help), insteadOption("", "version", psshVersion+"\n")), args)
	if err != nil {
		return nil, err
	}
	why := t.check(p)
	if why == "" && len(p.HostFiles) == 0 && len(p.HostStrings) == 0 {
		why = "Hosts not specified."
	}
	if why != "" {
		return nil, &errUsage{why}
	}
	return p, nil
}

// common are the options of all tools.
func (p *pssh) common() []option {
	words := func(text string) error {
		list, err := shell.Split(text)
		p.Extra = append(p.Extra, list...)
		return err
	}
	return []option{
		listOption("h", "hosts", &p.HostFiles), listOption("H", "host", &p.HostStrings),
		textOption("l", "user", &p.User), intOption("p", "par", &p.Par),
		textOption("o", "outdir", &p.OutDir), textOption("e", "errdir", &p.ErrDir),
		intOption("t", "timeout", &p.Timeout), listOption("O", "option", &p.Options),
		flagOption("v", "verbose", &p.Verbose), flagOption("A", "askpass", &p.AskPass),
		{short: "x", long: "extra-args", set: words}, listOption("X", "extra-arg", &p.Extra),
		textOption("g", "host-glob", &p.Glob),
	}
}

// fromEnvironment applies the variables PSSH_*; the options themselves win.
func fromEnvironment(p *pssh, options []option, getenv func(string) string) error {
	for _, o := range options {
		name := "PSSH_" + strings.ToUpper(o.long)
		switch o.long {
		case "hosts", "host", "option", "extra-args", "extra-arg", "host-glob", "inline-stdout", "send-input":
			continue
		}
		if value := getenv(name); value != "" {
			if err := o.apply("--"+o.long, value); err != nil {
				return err
			}
		}
	}
	if value := getenv("PSSH_OPTIONS"); value != "" {
		p.Options = []string{value}
	}
	if value := getenv("PSSH_HOSTS"); value != "" {
		p.HostFiles = []string{value}
	}
	return nil
}

// run runs the tool and returns its exit code.
func (p *pssh) run(ctx context.Context, env Env) (int, error) {
	if env.Getenv("PSSH_HOSTS") != "" {
		io.WriteString(env.Stderr, psshHostsWarning)
	}
	if err := p.readHosts(env); err != nil {
		return exitFailed, err
	}
	sink, err := newPsshSink(p, env)
	if err != nil {
		return exitFailed, err
	}
	work, err := p.tool.prepare(p, env)
	if err != nil {
		return exitFailed, errors.Join(err, sink.End(fleet.Summary{}))
	}
	sink.work = work
	params := fanout.Params{Fanout: max(p.Par, 1), ReservedFDs: sink.fds(), MaxOutput: fanout.DefaultMaxOutput}
	if !p.Inline && !p.InlineStdout {
		params.MaxOutput = 0
	}
	work.engine = &psshExecutor{Executor: work.engine, pssh: p}
	_, err = work.run(ctx, params, p.list(), sink)
	if err != nil && ctx.Err() == nil {
		return exitFailed, err
	}
	return sink.code(), err
}

func (p *pssh) list() []host.Host {
	list := make([]host.Host, len(p.hosts))
	for i, h := range p.hosts {
		list[i] = h.Host
	}
	return list
}

// psshExecutor gives each host its number and its time.
type psshExecutor struct {
	fleet.Executor
	pssh *pssh
}

// Execute passes the host its number, and ends it after its timeout.
func (e *psshExecutor) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	if cmd.Dialogue == nil {
		cmd.Env = []string{fmt.Sprintf("PSSH_NODENUM=%d", a.Index()), fmt.Sprintf("PSSH_NUMNODES=%d", len(e.pssh.hosts)), "PSSH_HOST=" + h.Name}
	}
	if e.pssh.Timeout > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeoutCause(ctx, time.Duration(e.pssh.Timeout)*time.Second, fleet.ErrCommandTimeout)
		defer end()
	}
	return e.Executor.Execute(ctx, h, cmd, a)
}

// psshHost is a host with its label.
type psshHost struct {
	host.Host
	name string // [user@]host[:port], the user only if it differs from that of -l
	port string // "" = not given
}

// readHosts reads the files and then the strings.
func (p *pssh) readHosts(env Env) error {
	for _, name := range p.HostFiles {
		text, err := file.ReadFile(name, file.List)
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			return &errUsage{"Could not open hosts file: " + fault.Strerror(errno)}
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			if err := p.hostLine(strings.Fields(line), strings.TrimSpace(line), env.Stderr); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, text := range p.HostStrings {
		for _, entry := range strings.Fields(text) {
			if err := p.addHost(entry, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// hostLine takes a line of a hosts file: [user@]host[:port] [user].
func (p *pssh) hostLine(fields []string, line string, warn io.Writer) error {
	switch {
	case len(fields) == 0:
		return nil
	case len(fields) > 2:
		fmt.Fprintf(warn, "Bad line: \"%s\". Format should be [user@]host[:port] [user]\n", termsafe.Line(line))
		return nil
	case len(fields) == 2 && strings.Contains(fields[0], "@"):
		fmt.Fprintf(warn, "User specified twice in line: \"%s\"\n", termsafe.Line(line))
		return nil
	}
	entry, user := fields[0], ""
	if len(fields) == 2 {
		user = fields[1]
	}
	_, name, _ := cutUser(entry)
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		name = name[:i]
	}
	if p.Glob != "" {
		if ok, err := path.Match(strings.ReplaceAll(p.Glob, "[!", "[^"), name); err != nil || !ok {
			return nil
		}
	}
	return p.addHost(entry, user)
}

func cutUser(entry string) (user, name string, found bool) {
	if user, name, found = strings.Cut(entry, "@"); found {
		return user, name, true
	}
	return "", entry, false
}

// addHost takes a host with the user of its line, or that of -l.
func (p *pssh) addHost(entry, user string) error {
	named, name, given := cutUser(entry)
	if !given {
		named = user
	}
	if named == "" {
		named = p.User
	}
	h := psshHost{name: name, Host: host.Host{User: named, Name: name}}
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		h.Name, h.port = name[:i], name[i+1:]
		at, err := host.ParsePort(h.port)
		if err != nil {
			return fmt.Errorf("%q: %w", entry, err)
		}
		h.Port = at
	}
	if err := h.Check(); err != nil {
		return fmt.Errorf("%q: %w", entry, err)
	}
	if named != p.User {
		h.name = named + "@" + name
	}
	p.hosts = append(p.hosts, h)
	return nil
}
