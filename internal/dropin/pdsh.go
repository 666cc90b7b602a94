package dropin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/expand"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/openssh"
)

// pdshVersion is the version of pdsh whose behavior we promise.
const pdshVersion = "2.34"

// pdsh is one call of pdsh. Its promise: options, variables, host lists, genders files, labels,
// messages and exit codes. Knowingly different: hosts are reached by ssh unless -R says exec, never
// by rsh; an unknown host key is never trusted silently; the first Ctrl-C ends the run, as with -b,
// and commands with it; -u ends the command on the host, too, and says so in one line; a last line
// without an end gets one; a malformed list is an error; standard input of the remote command is
// empty; on a terminal remote text is cleaned.
type pdsh struct {
	targets pdshTargets

	Largest, NoLabels, Debug, Batch bool
	Query, Expand                   bool // list what would be done; Expand: every host by its name
	ConnectTimeout, CommandTimeout  int  // seconds
	Fanout                          int
	User                            string
	Rcmd                            string
	Command                         []string

	ignored bool
}

var pdshProgram = program{
	parse: func(env Env, args []string) (call, error) { return parsePdsh(env, args) },
	usage: func(env Env, text string) {
		if text != "" {
			text = "pdsh: " + text + "\n"
		}
		io.WriteString(env.Stderr, text+pdshHelp)
	},
	misuse:      exitFailed,
	said:        func(env Env, text string) string { return pdshName(env) + text },
	interrupted: exitFailed,
}

// pdshName begins the program's own messages.
func pdshName(env Env) string { return "pdsh@" + env.Hostname + ": " }

func (p *pdsh) options() []option {
	number := func(letter string, to *int) option { // as atoi(3) reads it
		return option{short: letter, set: func(v string) error {
			digits := strings.TrimLeft(v, " ")
			n := 0
			for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
				n++
			}
			*to, _ = strconv.Atoi("0" + digits[:n])
			return nil
		}}
	}
	t := &p.targets
	return []option{
		flagOption("S", "", &p.Largest), {short: "h", noValue: true, set: func(string) error { return &errUsage{} }}, flagOption("s", "", &p.ignored), insteadOption("V", "", pdshAbout),
		flagOption("q", "", &p.Query), flagOption("Q", "", &p.Expand), flagOption("b", "", &p.Batch), flagOption("d", "", &p.Debug),
		textOption("l", "", &p.User), number("t", &p.ConnectTimeout), number("u", &p.CommandTimeout),
		{short: "f", set: p.fanout}, listOption("w", "", &t.given), listOption("x", "", &t.excluded),
		textOption("R", "", &p.Rcmd), {short: "M", set: func(string) error { return nil }}, flagOption("N", "", &p.NoLabels),
		insteadOption("L", "", pdshModules), listOption("g", "", &t.genders), listOption("X", "", &t.notGenders), textOption("F", "", &t.gendersFile),
		flagOption("i", "", &p.ignored), flagOption("a", "", &t.all), flagOption("A", "", &t.every),
	}
}

func (p *pdsh) fanout(v string) error {
	n, err := strconv.Atoi(strings.TrimPrefix(v, "-"))
	if err != nil || n == 0 {
		return &pdshError{fmt.Sprintf("Invalid fanout `%s' passed to -f.", v)}
	}
	p.Fanout = n
	return nil
}

// pdshError is a mistake after which the original prints no usage.
type pdshError struct{ text string }

func (e *pdshError) Error() string { return e.text }

// pdshConnectTimeout is the default time for ssh to connect, in seconds.
const pdshConnectTimeout = 10

// parsePdsh reads variables and arguments.
func parsePdsh(env Env, args []string) (*pdsh, error) {
	p := &pdsh{Fanout: 32, ConnectTimeout: pdshConnectTimeout, User: env.User, Rcmd: "ssh"}
	p.targets.getenv, p.targets.stdin = env.Getenv, env.Stdin
	for _, v := range []struct {
		name string
		to   *int
	}{{"FANOUT", &p.Fanout}, {"PDSH_CONNECT_TIMEOUT", &p.ConnectTimeout}, {"PDSH_COMMAND_TIMEOUT", &p.CommandTimeout}} {
		text := env.Getenv(v.name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, &pdshError{"Invalid environment variable " + v.name + "=" + text}
		}
		*v.to = n
	}
	if rcmd := env.Getenv("PDSH_RCMD_TYPE"); rcmd != "" {
		p.Rcmd = rcmd
	}
	var err error
	p.Command, err = parseOptions(p.options(), args)
	return p, getoptWords(err)
}

// getoptWords words a mistake as getopt(3) does.
func getoptWords(err error) error {
	usage, ok := errors.AsType[*errUsage](err)
	if !ok {
		return err
	}
	if name, found := strings.CutPrefix(usage.text, "no such option: -"); found {
		return &errUsage{"invalid option -- '" + name[:1] + "'"}
	}
	if name, found := strings.CutSuffix(usage.text, " option requires 1 argument"); found {
		return &errUsage{"option requires an argument -- '" + name[1:] + "'"}
	}
	return err
}

// run works out the hosts and runs the command, or the commands on standard input.
func (p *pdsh) run(ctx context.Context, env Env) (int, error) {
	if p.ConnectTimeout != pdshConnectTimeout && p.Rcmd == "exec" {
		return exitFailed, &pdshError{`Cannot specify -t with "-R exec"`}
	}
	hosts, err := p.targets.hosts(p)
	if err != nil {
		return exitFailed, err
	}
	if p.Query || p.Expand {
		p.list(env, hosts)
		return exitOK, nil
	}
	s, err := p.session(env, hosts)
	if err != nil {
		return exitFailed, err
	}
	defer s.stop()
	if len(p.Command) == 0 {
		return exitOK, s.interactive(ctx)
	}
	return s.command(ctx, p.Command)
}

// pdshSession is a set of hosts and the engine for them.
type pdshSession struct {
	*pdsh
	env     Env
	hosts   []pdshHost
	engine  fleet.Executor
	stop    func() error
	options []string // of ssh
	argv    []string // of the exec module
}

// session prepares an engine for the hosts that are reached by ssh.
func (p *pdsh) session(env Env, hosts []pdshHost) (*pdshSession, error) {
	s := &pdshSession{pdsh: p, env: env, hosts: hosts, stop: nothing}
	options, err := p.sshOptions(env)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(hosts, func(h pdshHost) bool { return h.rcmd == "ssh" }) {
		return s, nil
	}
	w, err := env.engine(options, s.list())
	s.engine, s.stop, s.options = w.engine, w.stop, w.options
	return s, err
}

// list returns the hosts for an engine: a user who is the local one is not passed to ssh, whose
// configuration may have another.
func (s *pdshSession) list() []host.Host {
	list := make([]host.Host, len(s.hosts))
	for i, h := range s.hosts {
		list[i] = h.Host
		if h.User == s.env.User {
			list[i].User = ""
		}
	}
	return list
}

// sshOptions returns the additional options of PDSH_SSH_ARGS and PDSH_SSH_ARGS_APPEND.
func (p *pdsh) sshOptions(env Env) ([]string, error) {
	before, err := shell.Split(env.Getenv("PDSH_SSH_ARGS_APPEND"))
	if err != nil {
		return nil, &pdshError{"PDSH_SSH_ARGS_APPEND: " + err.Error()}
	}
	args, err := shell.Split(env.Getenv("PDSH_SSH_ARGS"))
	if err != nil {
		return nil, &pdshError{"PDSH_SSH_ARGS: " + err.Error()}
	}
	var options []string
	for _, list := range [][]string{before, args} {
		joined, _ := joinOptions(list, openssh.WithValue)
		for _, o := range joined {
			if o != "-2" && o != "-a" && o != "-x" && o != "-l%u" {
				options = append(options, o)
			}
		}
	}
	return append(options, "-oConnectTimeout="+strconv.Itoa(p.ConnectTimeout)), nil
}

// command runs one command on all hosts.
func (s *pdshSession) command(ctx context.Context, words []string) (int, error) {
	s.argv = words
	line := strings.Join(words, " ")
	if path := s.env.Getenv("DSHPATH"); path != "" {
		line = "PATH=" + path + ";" + line
	}
	sink := newPdshSink(s)
	params := fanout.Params{Fanout: s.Fanout, CommandTimeout: time.Duration(s.CommandTimeout) * time.Second}
	w := work{command: fleet.Command{Line: line}, engine: s, stop: nothing}
	if _, err := w.run(ctx, params, s.list(), sink); err != nil {
		return exitFailed, err
	}
	if s.Debug {
		sink.statistics()
	}
	if !s.Largest {
		return exitOK, nil
	}
	return sink.largest, nil
}

// FDs is the most that a host needs.
func (s *pdshSession) FDs() int {
	if s.engine != nil {
		return s.engine.FDs()
	}
	return s.program(nil, "").FDs()
}

// Execute replaces %h, %u and %n, and runs the command by the module of the host.
func (s *pdshSession) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	rank := a.Index()
	if s.hosts[rank].rcmd == "ssh" {
		cmd.Line = s.fill(cmd.Line, rank)
		return s.engine.Execute(ctx, h, cmd, a)
	}
	var argv []string
	for _, word := range s.argv {
		argv = append(argv, s.fill(word, rank))
	}
	return s.program(argv[1:], argv[0]).Execute(ctx, h, cmd, a)
}

func (s *pdshSession) program(args []string, path string) fleet.Executor {
	return forkssh.New(forkssh.Options{Binary: path, Argv: func(host.Host, string) []string { return args }})
}

// fill replaces %h, %u, %n and %%.
func (s *pdshSession) fill(text string, rank int) string {
	own := map[string]string{"h": s.hosts[rank].Name, "u": s.hosts[rank].User, "n": strconv.Itoa(rank)}
	return expand.Replace(text, func(token string) (string, bool) { value, known := own[token]; return value, known })
}
