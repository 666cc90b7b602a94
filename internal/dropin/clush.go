package dropin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/terminal"
)

// clush is one call of ClusterShell's clush 1.9.1. Its promise: options, clush.conf, groups.conf,
// labels, blocks, messages and exit codes. Knowingly different: an unknown host key is never
// trusted silently; a wildcard without a match and a group that a YAML file lacks are errors; names
// of groups have no characters of a shell; there is no counter of hosts; a line with carriage
// returns inside loses nothing; --diff may pair other lines; -u counts from the start of the
// command, which ends on the host, too; on a terminal remote text is cleaned; workers, modes,
// regrouping, gateways and the interactive mode are missing.
type clush struct {
	Conf, GroupsConf, Source            string
	Nodes, Excluded, Files              []string
	Groups, NotGroups                   []string
	All, NoStdin, LineMode, NoLabels    bool
	Gather, GatherAll, Diff             bool
	Copying, Copy, Back, Preserve       bool
	MaxRC                               bool
	Dest                                string
	Args                                []string
	settings                            map[string]string // of options, then also of clush.conf
	overrides, names, options           []string          // of -O; of the hosts; of ssh
	fanout, verbosity, connect, command float64
}

var clushProgram = program{
	parse: func(env Env, args []string) (call, error) { return parseClush(env, args) },
	usage: clushUsage, misuse: exitUsage, interrupted: exitInterrupted,
	said: func(_ Env, text string) string { return "clush: " + text },
}

func clushUsage(env Env, text string) {
	fmt.Fprintf(env.Stderr, "Usage: clush [options] command\n\nclush: error: %s\n", text)
}

// list has all options; some set the value of a key of clush.conf.
func (c *clush) list() []option {
	key := func(short, long, key, kind string) option {
		return option{short: short, long: long, set: func(v string) error {
			if _, err := strconv.ParseFloat(v, 64); kind != "" && err != nil {
				return fmt.Errorf("invalid %s value: %s", kind, pythonString(v))
			}
			c.settings[key] = v
			return nil
		}}
	}
	fixed := func(short, long, key, value string) option {
		return option{short: short, long: long, noValue: true, set: func(string) error { c.settings[key] = value; return nil }}
	}
	return []option{
		flagOption("n", "nostdin", &c.NoStdin), textOption("", "groupsconf", &c.GroupsConf), textOption("", "conf", &c.Conf), listOption("O", "option", &c.overrides),
		listOption("w", "", &c.Nodes), listOption("x", "", &c.Excluded), flagOption("a", "all", &c.All), listOption("g", "group", &c.Groups), listOption("X", "", &c.NotGroups),
		textOption("s", "groupsource", &c.Source), listOption("", "hostfile", &c.Files), listOption("", "machinefile", &c.Files),
		fixed("q", "quiet", "verbosity", "0"), fixed("v", "verbose", "verbosity", "2"), fixed("d", "debug", "verbosity", "2"), fixed("G", "groupbase", "", ""), fixed("P", "progress", "", ""),
		flagOption("L", "", &c.LineMode), flagOption("N", "", &c.NoLabels), flagOption("b", "dshbak", &c.Gather), flagOption("B", "", &c.GatherAll),
		flagOption("S", "maxrc", &c.MaxRC), key("", "color", "color", ""), flagOption("", "diff", &c.Diff),
		flagOption("c", "copy", &c.Copy), flagOption("", "rcopy", &c.Back), textOption("", "dest", &c.Dest), flagOption("p", "", &c.Preserve),
		key("f", "fanout", "fanout", "integer"), key("l", "user", "ssh_user", ""), key("o", "options", "ssh_options", ""),
		key("t", "connect_timeout", "connect_timeout", "floating-point"), key("u", "command_timeout", "command_timeout", "floating-point"),
		insteadOption("", "version", "clush 1.9.1\n"), insteadOption("h", "help", clushHelp),
	}
}

func parseClush(env Env, args []string) (_ *clush, err error) {
	c := &clush{settings: map[string]string{}}
	c.Args, err = parseOptions(c.list(), args)
	if c.Copying = c.Copy || c.Back; c.Copying && err == nil {
		c.Args, err = parseMixed(c.list(), c.Args)
	}
	c.Gather = c.Gather || c.GatherAll || c.Diff
	interactive := len(c.Args) == 0 && terminal.IsInput(env.Stdin)
	switch {
	case err != nil:
	case c.Diff && c.LineMode:
		err = &errUsage{"option mismatch (diff not supported in line_mode)"}
	case len(c.Args) == 0 && c.Copying:
		err = &errUsage{"--[r]copy option requires at least one argument"}
	case c.NoStdin && interactive:
		err = &errUsage{"illegal option `--nostdin' in that case"}
	case interactive:
		err = errors.New("no command: give one, or send it on standard input; sshpace compat pdsh -w SET reads commands line by line")
	}
	return c, err
}

// configure adds the settings of clush.conf to those of the options. Those of -O replace both.
func (c *clush) configure(env Env) error {
	conf := readClushConf(env, c.Conf, "clush.conf")
	for _, values := range []map[string]string{conf["Main"], {"fanout": "64", "connect_timeout": "10", "command_timeout": "0", "verbosity": "1", "node_count": "yes"}} {
		for key, value := range values {
			c.settings[key] = cmp.Or(c.settings[key], strings.ReplaceAll(value, "%%", "%"))
		}
	}
	for _, o := range c.overrides {
		key, value, found := strings.Cut(o, "=")
		if c.settings[key] = value; !found {
			return bare{fmt.Errorf("ERROR: (Config Main.%s): invalid -O/--option value", o)}
		}
	}
	var err error
	for key, to := range map[string]*float64{"fanout": &c.fanout, "connect_timeout": &c.connect, "command_timeout": &c.command, "verbosity": &c.verbosity} {
		if *to, err = strconv.ParseFloat(c.settings[key], 64); err != nil {
			return bare{fmt.Errorf("ERROR: (Config Main.%s): %q is not a number", key, c.settings[key])}
		}
	}
	words, err := shell.Split(c.settings["ssh_options"])
	options, others := joinOptions(words, openssh.WithValue)
	if err == nil && len(others) > 0 {
		err = fmt.Errorf("ssh_options: %q is not an option", others[0])
	}
	c.options = append(options, "-oForwardAgent=no", "-oForwardX11=no", fmt.Sprintf("-oConnectTimeout=%d", int(max(c.connect, 0))))
	return err
}

// yes reports whether a setting is true.
func (c *clush) yes(key string) bool {
	return slices.Contains([]string{"yes", "true", "on", "1"}, strings.ToLower(c.settings[key]))
}

// hosts works out the hosts, in the order of their numbers.
func (c *clush) hosts(ctx context.Context, env Env) ([]host.Host, error) {
	sets, out := c.Nodes, c.Excluded
	for _, name := range c.Files {
		data, err := file.ReadFile(name, file.List)
		if err != nil {
			return nil, bare{fmt.Errorf("ERROR: %w", err)}
		}
		sets = append(sets, strings.Fields(string(data))...)
	}
	if c.All {
		sets = append(sets, "@*")
	}
	for _, name := range splitList(strings.Join(c.Groups, ",")) {
		sets = append(sets, "@"+name)
	}
	for _, name := range splitList(strings.Join(c.NotGroups, ",")) {
		out = append(out, "@"+name)
	}
	var groups hostset.Groups = hostset.Sources{}
	if c.Source != "" || strings.ContainsAny(strings.Join(slices.Concat(sets, out), ""), "@*?") {
		var err error
		if groups, err = c.groups(ctx, env); err != nil {
			return nil, err
		}
	}
	hosts, err := hostset.Selection{Sets: sets, Exclude: out, EmptyOK: true, Options: hostset.Options{Groups: groups}}.Hosts()
	named := map[string]host.Host{}
	for _, h := range hosts {
		named[h.String()] = h
	}
	c.names, hosts = hostset.Sorted(slices.Collect(maps.Keys(named))), nil
	for _, name := range c.names {
		h := named[name]
		h.User = cmp.Or(c.settings["ssh_user"], h.User)
		hosts = append(hosts, h)
	}
	return hosts, err
}

// run runs the command, or copies one file after the other.
func (c *clush) run(ctx context.Context, env Env) (int, error) {
	if err := c.configure(env); err != nil {
		return exitFailed, err
	}
	hosts, err := c.hosts(ctx, env)
	if err != nil {
		return exitFailed, err
	}
	if len(hosts) == 0 {
		clushUsage(env, "No node to run on.")
		return exitUsage, nil
	}
	calls := []string{strings.Join(c.Args, " ")}
	if c.Copying {
		calls = c.Args
	}
	works := make([]work, len(calls))
	for i, text := range calls {
		if works[i], err = c.prepare(env, hosts, text); err != nil {
			return exitFailed, err
		}
	}
	largest, when := 0, c.settings["color"]
	for i, w := range works {
		s := &clushSink{clush: c, env: env, work: w, text: calls[i], keeps: !c.Copying && (c.Gather || c.LineMode), ended: map[int][]clushSent{}}
		s.lines.Lines = output.Lines{Max: 1 << 20, OnlyLF: true}
		s.colored = when == "always" || when != "never" && env.StdoutTTY && env.Getenv("NO_COLOR") == ""
		params := fanout.Params{Fanout: max(int(c.fanout), 1), CommandTimeout: time.Duration(c.command * float64(time.Second))}
		if s.keeps {
			params.MaxOutput = fanout.DefaultMaxOutput
		}
		if _, err := w.run(ctx, params, hosts, s); err != nil {
			return exitOK, err
		}
		largest = max(largest, s.largest)
	}
	if !c.MaxRC && !c.yes("maxrc") {
		return exitOK, nil
	}
	return largest, nil
}

// prepare makes the work of a command line, "" = a shell that reads its commands, or of a copy.
// Hosts get our standard input unless it is a terminal.
func (c *clush) prepare(env Env, hosts []host.Host, text string) (work, error) {
	if !c.Copying {
		w, err := env.engine(c.options, hosts)
		if w.command.Line = cmp.Or(text, loginShell); err == nil && !c.NoStdin && !terminal.IsInput(env.Stdin) {
			w = w.fed(env.Stdin)
		}
		return w, err
	}
	p := &pssh{Extra: c.options, Recursive: true}
	if c.Preserve {
		p.Extra = append(slices.Clone(c.options), "-p")
	}
	for _, h := range hosts {
		p.hosts = append(p.hosts, psshHost{Host: h})
	}
	first, err := filepath.Abs(c.Args[0])
	if err != nil {
		return work{}, err
	}
	c.Dest = cmp.Or(c.Dest, strings.TrimSuffix(filepath.Dir(first), "/")+"/")
	source, noSource := os.Stat(text)
	dest, noDest := os.Stat(c.Dest)
	switch {
	case c.Copy && noSource != nil:
		return work{}, bare{fmt.Errorf("ERROR: file \"%s\" not found", text)}
	case c.Copy:
		p.Recursive, p.Args = source.IsDir(), []string{text, c.Dest}
		return p.copy(env)
	case noDest != nil:
		return work{}, bare{fmt.Errorf("ERROR: directory \"%s\" not found", c.Dest)}
	case !dest.IsDir():
		return work{}, bare{fmt.Errorf("ERROR: destination \"%s\" is not a directory", c.Dest)}
	}
	return p.fetchTo(env, text, func(h host.Host) (string, string) {
		return c.Dest, text[strings.LastIndexByte(text, '/')+1:] + "." + h.Name
	})
}

const clushHelp = `Usage: clush [options] command

Options (a mode of sshpace; * also with the original's long name):
  -w, -x NODES   nodes such as n[1-9],@group; nodes to leave out
  -a*            all nodes
  -g*, -X GROUP  nodes of a group; those to leave out
  -s* SOURCE     of groups
  --hostfile=FILE, --conf=FILE, --groupsconf=FILE, -O* KEY=VALUE
  -n*            no standard input for the nodes
  -b*, -B        same output together; with standard error
  -L             lines in the order of nodes; -bL: same lines together
  --diff         how outputs differ
  -N, --color=never|always|auto, -q*, -v*
  -S*            end with the largest exit code
  -c*, --rcopy   copy files to the nodes, or from them
  --dest=PATH    where to (default: the directory of the first file)
  -p             keep times and modes
  -f* N          nodes at the same time (default 64)
  -l* USER, -o* "OPTIONS OF SSH"
  -t*, -u* SEC   limits for connecting, and for the command
`
