package dropin

import (
	"io"
	"slices"
	"strings"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
)

// psshTools are the programs of the package, by the end of their names.
var psshTools = map[string]psshTool{
	"ssh": {
		usage: "command [...]", example: "pssh -h hosts.txt -l irb2 -o /tmp/foo uptime", timeout: 60, failed: 5,
		own: func(p *pssh) []option {
			return []option{
				flagOption("i", "inline", &p.Inline), flagOption("", "inline-stdout", &p.InlineStdout),
				flagOption("I", "send-input", &p.SendInput), flagOption("P", "print", &p.Print),
			}
		},
		help: `  -i, --inline          show output and errors of each host as it ends
  --inline-stdout       show output of each host as it ends
  -I, --send-input      send standard input to every host
  -P, --print           show output as it comes
`,
		check: func(p *pssh) string {
			if len(p.Args) == 0 && !p.SendInput {
				return "Command not specified."
			}
			return ""
		},
		prepare: (*pssh).command,
	},
	"nuke": {
		usage: "pattern", example: "pnuke -h hosts.txt -l irb2 java", timeout: 60, failed: 5,
		own: func(*pssh) []option { return nil },
		check: func(p *pssh) string {
			return wanted(p.Args, []string{"Pattern not specified."}, "Extra arguments given after the pattern.")
		},
		prepare: (*pssh).nuke,
	},
	"scp": {
		usage: "local remote", example: "pscp -h hosts.txt -l irb2 foo.txt /home/irb2/foo.txt", failed: 4,
		own:  func(p *pssh) []option { return []option{flagOption("r", "recursive", &p.Recursive)} },
		help: "  -r, --recursive       directories, with all that is in them\n",
		check: func(p *pssh) string {
			return wanted(p.Args, []string{"Paths not specified.", "Remote path not specified."}, "")
		},
		prepare: (*pssh).copy,
	},
	"slurp": {
		usage: "remote local", example: "pslurp -h hosts.txt -L /tmp/outdir -l irb2 /home/irb2/foo.txt foo.txt", failed: 5,
		own: func(p *pssh) []option {
			return []option{flagOption("r", "recursive", &p.Recursive), textOption("L", "localdir", &p.LocalDir)}
		},
		help: "  -r, --recursive       directories, with all that is in them\n  -L, --localdir=DIR    make the directories HOST:PORT here\n",
		check: func(p *pssh) string {
			return wanted(p.Args, []string{"Paths not specified.", "Local path not specified."}, "Extra arguments given after the local path.")
		},
		prepare: (*pssh).fetch,
	},
	"rsync": {
		usage: "local remote", example: "prsync -r -h hosts.txt -l irb2 foo /home/irb2/foo", failed: 4,
		own: func(p *pssh) []option {
			return []option{
				flagOption("r", "recursive", &p.Recursive), flagOption("a", "archive", &p.Archive),
				flagOption("z", "compress", &p.Compress), textOption("S", "ssh-args", &p.SSHArgs),
			}
		},
		help: `  -r, --recursive       directories, with all that is in them
  -a, --archive         as rsync -a
  -z, --compress        as rsync -z
  -S, --ssh-args=ARGS   further arguments of ssh; those of -x and -X are rsync's
`,
		check: func(p *pssh) string {
			return wanted(p.Args, []string{"Paths not specified.", "Remote path not specified."}, "")
		},
		prepare: (*pssh).rsync,
	},
}

// wanted returns which argument is missing, or that there are too many ("" = any number).
func wanted(args, missing []string, tooMany string) string {
	switch {
	case len(args) < len(missing):
		return missing[len(args)]
	case len(args) > len(missing):
		return tooMany
	}
	return ""
}

const psshHelp = `Options (a mode of sshpace):
  --version             the version
  --help                this text
  -h, --hosts=FILE      file with [user@]host[:port] on each line
  -H, --host=HOSTS      further hosts, separated by blanks
  -l, --user=USER       login name
  -p, --par=N           hosts at the same time (default 32)
  -o, --outdir=DIR      a file of each host's standard output in DIR
  -e, --errdir=DIR      a file of each host's standard error in DIR
  -t, --timeout=SEC     end each host after this time (0 = never)
  -O, --option=OPTION   option of ssh_config
  -v, --verbose         say more
  -A, --askpass         ask for a password, or the passphrase of a key
  -x, --extra-args=ARGS further arguments of ssh or scp, cut into words
  -X, --extra-arg=ARG   one further argument
  -g, --host-glob=GLOB  of the files' hosts only those
`

const psshHostsWarning = `Warning: the PSSH_HOSTS environment variable is deprecated.  Please
use the "-h" option instead, and consider creating aliases for
convenience.  For example:
    alias pssh_abc='pssh -h /path/to/hosts_abc'
`

// sshOptions returns the options of ssh that are the same for all hosts, one argument each, and the
// words that -x puts before the command.
func (p *pssh) sshOptions() (options, others []string) {
	for _, o := range p.Options {
		options = append(options, "-o"+o)
	}
	extra, others := joinOptions(p.Extra, openssh.WithValue)
	return append(options, extra...), others
}

func (p *pssh) engine(env Env, options []string) (work, error) {
	if p.AskPass {
		env.AskPass()
	}
	return env.engine(slices.Concat([]string{"-T"}, options, []string{"-oNumberOfPasswordPrompts=1"}), p.list())
}

// loginShell is the command that ssh runs without one.
const loginShell = "exec $SHELL -l"

func (p *pssh) command(env Env) (work, error) {
	options, before := p.sshOptions()
	work, err := p.engine(env, options)
	work.command.Line = strings.Join(append(before, p.Args...), " ")
	if work.command.Line == "" {
		work.command.Line = loginShell
	}
	if p.SendInput && err == nil {
		work = work.fed(env.Stdin)
	}
	return work, err
}

// fed passes an input to every host.
func (w work) fed(from io.Reader) work {
	input, stop := fleet.NewSpool(from), w.stop
	w.command.Input, w.stop = input, func() error { input.Close(); return stop() }
	return w
}

// nuke kills the processes of a pattern on the hosts.
func (p *pssh) nuke(env Env) (work, error) {
	options, before := p.sshOptions()
	work, err := p.engine(env, options)
	work.command.Line = strings.Join(append(before, "pkill -9 "+p.Args[0]), " ")
	return work, err
}
