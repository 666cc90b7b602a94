package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/expand"
	"sshpace/internal/fanout/hostlist"
	"sshpace/internal/fanout/reboot"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/terminal"
)

type runFlags struct {
	connection connectionFlags
	selection  fleetHosts
	view       viewFlags
	pace       paceFlags

	fanout         int
	connectTimeout seconds
	timeout        seconds
	maxOutput      byteLimit
	keepOutput     byteLimit
	retryFor       seconds
	engine         string
	acceptNew      bool
	maxrc          bool
	stdin          bool
	script         string
	perHost        bool
	expansion      expandFlags
	noRecord       bool
	noRemoteKill   bool
	loginLog       string
	person         *dial.Person // answers hosts, nil = nobody
	secrets        secretFlags
	listing        listingFlags
	rerun          string
	repeats        string // ID of the run that is done again
	every          seconds
	count          int
	list           bool
	dryRun         bool
	tty            bool
	reboot         bool
	job            jobFlags
	detach         bool
	started        bool         // of detach: this is the process that stays
	way            proc.Started // into the background

	dialogue func(hosts int) fleet.Dialogue // held with SFTP servers instead of running a command
}

// register defines the flags that all commands for many hosts have.
func (f *runFlags) register(flags *pflag.FlagSet) {
	f.connection.register(flags)
	f.selection.register(flags)
	f.view.register(flags)
	f.pace.register(flags)
	f.expansion.register(flags)
	flags.IntVarP(&f.fanout, "fanout", "f", 0, "limit of parallel connections; 0 = as many as the servers and this machine can handle")
	flags.Var(&f.connectTimeout, "connect-timeout", fmt.Sprintf("time for name look-up, connection and login (default %s)", fleet.ConnectTimeout))
	flags.Var(&f.timeout, "timeout", "time for the command on each host; then it is ended there (default none)")
	flags.Var(&f.retryFor, "retry-for", "how long to retry hosts that are too busy for a login (default 2m, 30s if no login succeeded there); if given, also hosts that are down, refuse the port or end every login, as during boot")
	flags.StringVar(&f.engine, "engine", string(reach.Auto), "auto, native (never start ssh) or openssh (always start ssh)")
	flags.BoolVar(&f.acceptNew, "accept-new", false, "trust and record keys of hosts that are not in known_hosts yet")
	flags.BoolVar(&f.noRecord, "no-record", false, "do not record this run in the history")
	flags.BoolVar(&f.list, "list", false, "print the hosts and do nothing")
	f.registerLook(flags)
}

// registerLook defines the flags about what is shown besides the hosts.
func (f *runFlags) registerLook(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.view.Verbose, "verbose", "v", false, "report how long each phase took on each host")
	flags.BoolVarP(&f.view.Quiet, "quiet", "q", false, "no progress and no summary")
}

// registerOutput defines the flags about the output of commands.
func (f *runFlags) registerOutput(flags *pflag.FlagSet) {
	flags.Var(&f.maxOutput, "max-output", "limit of each host's output; a command that sends more is ended; 0 = no limit")
	flags.Var(&f.keepOutput, "keep-output", "output to keep in the history, of all hosts together; run --history ID shows it (default none)")
	f.registerMaxRC(flags)
}

func (f *runFlags) registerMaxRC(flags *pflag.FlagSet) {
	flags.BoolVar(&f.maxrc, "maxrc", false, "exit with the largest exit status of all hosts, 255 for those without one")
}

func newRunCommand(sys System) *cobra.Command {
	f := runFlags{maxOutput: fanout.DefaultMaxOutput}
	cmd := page("run", &cobra.Command{
		RunE: f.detached(sys, func(cmd *cobra.Command, args []string) error {
			return runRun(cmd.Context(), sys, &f, cmd.Flags(), args)
		}),
	})
	flags := cmd.Flags()
	flags.SetInterspersed(false) // words after the command's first one belong to the command
	f.register(flags)
	completeSets(cmd, sys, &f.connection)
	f.secrets.register(flags)
	f.registerOutput(flags)
	f.registerDetach(flags)
	f.job.register(flags)
	flags.BoolVar(&f.stdin, "stdin", false, "read standard input once and send it to every host")
	flags.StringVar(&f.script, "script", "", "run this local script on the hosts; COMMAND is its arguments")
	flags.BoolVar(&f.perHost, "per-host", false, "replace %h in COMMAND with the name of each host, and %% with %")
	flags.BoolVar(&f.noRemoteKill, "no-remote-kill", false, "never open a second session to kill a command; a forced command would run in it")
	flags.BoolVar(&f.tty, "tty", false, "give the command a terminal, without input; lines are shown as usual; to type into one, use ssh -t HOST")
	flags.BoolVar(&f.reboot, "wait-for-reboot", false, "run the command, which reboots the host, and wait until it is back with another boot id; --timeout is for both (default 10m)")
	flags.Var(&f.every, "every", "repeat the command at this interval until Ctrl-C, and show what has changed; not recorded in the history")
	flags.IntVarP(&f.count, "count", "c", 0, "number of runs with --every (default until Ctrl-C)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show hosts, batches, routes, engines and commands, and connect to nobody")
	flags.StringVar(&f.loginLog, "login-log", "", "write the steps of logins to this file or pipe")
	_ = flags.MarkHidden("login-log") // of login
	f.listing.register(flags)
	flags.StringVar(&f.rerun, "rerun", "", "run on sets of the last run's hosts, such as failed,unreachable,unfinished, and on those of -w, with the connection "+
		"flags of that run; without COMMAND, repeat its command, with all flags that are not given anew")
	return cmd
}

// check refuses flags that contradict each other.
func (f *runFlags) check() error {
	f.view.Every = f.every > 0
	switch {
	case !slices.Contains([]reach.Engine{reach.Auto, reach.Native, reach.OpenSSH}, reach.Engine(f.engine)):
		return usageError("use auto, native or openssh", "--engine %q", f.engine)
	case f.secrets.ForLogin() && reach.Engine(f.engine) == reach.OpenSSH:
		return usageError("leave --engine out: ssh itself is never given a password", "--ask-pass and --engine openssh exclude each other")
	case f.detach && f.pace.ThenConfirm && !f.pace.yes:
		return usageError("add -y, or leave it out", "after --detach nobody is asked, as --then-confirm would")
	case f.count > 0 && f.every == 0:
		return usageError("such as --every 10s --count 6", "--count is for --every")
	case f.stdin && f.selection.ReadsStdin():
		return usageError("put the hosts into a file", "--stdin and hosts from standard input exclude each other")
	}
	return cmp.Or(route.CheckFlags(f.connection.Flags), f.expansion.check(), f.view.Check(), f.pace.Check(), f.secrets.Check())
}

func runRun(ctx context.Context, sys System, f *runFlags, flags *pflag.FlagSet, args []string) error {
	if f.listing.history && flags.ArgsLenAtDash() < 0 { // flags may follow its words
		flags.SetInterspersed(true)
		if err := flags.Parse(args); err != nil {
			return &Error{Err: err, Hint: "see sshpace run --help; -- stands before words that begin with -", Code: ExitUsage}
		}
		args = flags.Args()
	}
	if err := cmp.Or(f.check(), f.checkHub(sys, flags), f.view.usable(sys)); err != nil {
		return err
	}
	store := history.New(history.Dir(sys.Getenv))
	if f.listing.history && !f.selection.None() {
		return usageError("leave -w out; words after --history are searched in commands, hosts and kept output", "--history lists runs of all hosts")
	}
	if !f.listing.history && (flags.Changed("since") || flags.Changed("limit") || f.listing.follow) {
		return usageError("such as sshpace run --history --since 2h", "--since, --limit and --follow are for --history")
	}
	if f.listing.follow {
		return f.follow(ctx, sys, store, args)
	}
	if f.listing.history {
		return f.showHistory(ctx, sys, store, flags, args)
	}
	if word := flagBehind(flags, args, true); word != "" && f.rerun == "" && f.selection.None() {
		return usageError("flags come before the command: sshpace run -w HOSTS -- COMMAND", "no hosts given: %s is a word of the command", word)
	}
	if err := f.expanded(flags, args); err != nil {
		return err
	}
	t, err := f.task(ctx, sys, store, flags, args)
	switch {
	case errors.Is(err, errNothingToRepeat):
		return nil
	case err != nil:
		return err
	}
	defer t.close()
	if f.list {
		return hostlist.Exact(sys.Stdout, t.hosts)
	}
	if f.dryRun {
		return f.preview(ctx, sys, t)
	}
	if flags.Changed("retry-for") && f.retryFor == 0 {
		f.retryFor = -1 // never, where 0 would be the default
	}
	if f.job.given() {
		if t.office, err = f.newOffice(ctx, sys, t); err != nil {
			return err
		}
	}
	err = t.run(ctx, sys, f)
	if hint := f.hint(sys, flags, args, t.failed); hint != "" && !f.view.Quiet {
		fmt.Fprintf(sys.Stderr, "sshpace: hint: %s\n", oneLine(hint))
	}
	return err
}

// hint suggests what the user may have meant; failed: on every host.
func (f *runFlags) hint(sys System, flags *pflag.FlagSet, args []string, failed bool) string {
	if !f.stdin && terminal.Unread(sys.Stdin) {
		return "standard input was not read; --stdin sends it to every host"
	}
	if f.script != "" || f.dialogue != nil {
		return ""
	}
	words := strings.Join(args, " ")
	first, _, _ := strings.Cut(words, " ")
	if info, err := os.Stat(first); failed && strings.Contains(first, "/") && err == nil && info.Mode().IsRegular() {
		return first + " is a file here, too: --script " + first + " sends it to the hosts and runs it there"
	}
	if !f.perHost && !f.expansion.on && expand.MeansHost(words) {
		return "%h went to the hosts as it is; --per-host replaces it with the name of each host"
	}
	if word := flagBehind(flags, args, false); word != "" && failed {
		return word + " went to the command; flags of sshpace come before it, and -- ends them"
	}
	return ""
}

// expanded refuses hosts that a shell made of -w web{1..3}: all but the first would be the command.
func (f *runFlags) expanded(flags *pflag.FlagSet, args []string) error {
	if len(args) == 0 || len(f.selection.Sets) == 0 || flags.ArgsLenAtDash() >= 0 {
		return nil
	}
	host, word := f.selection.Sets[len(f.selection.Sets)-1], args[0]
	both := hostset.Fold([]string{host, word})
	if host == word || strings.ContainsAny(host, "[,") || !strings.Contains(both, "[") || strings.Contains(both, ",") {
		return nil
	}
	return usageError(fmt.Sprintf("hosts are one word: -w %s,%s or -w '%s'; if it is the command, write -- before it", host, word, both), "%s, the first word of the command, looks like a host", word)
}

// flagBehind returns a word after the first one of a command that is a flag of ours, too, such as
// -b in uptime -b; "" where there is none, or where -- says that all belong to the command. A short
// one is likely to be ours only at the end, unless anywhere is set.
func flagBehind(flags *pflag.FlagSet, args []string, anywhere bool) string {
	if flags.ArgsLenAtDash() >= 0 {
		return ""
	}
	for i, word := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case i == 0:
		case strings.HasPrefix(word, "--") && flags.Lookup(name) != nil:
			return word
		case len(word) == 2 && word[0] == '-' && word[1] != '-' && flags.ShorthandLookup(name) != nil && (anywhere || i == len(args)-1):
			return word
		}
	}
	return ""
}

// task is a run that is about to begin.
type task struct {
	hosts   []host.Host
	how     output.How
	command fleet.Command
	own     func(fleet.Command, host.Host) fleet.Command // makes the command of a host; nil: the same for all
	input   *fleet.Spool                                 // of the command, nil = none
	reach   *reach.Executor
	shells  fleet.Executor  // runs the command in the place of reach; nil: none
	office  *office         // of the launchers that run it in the place of reach; nil: none
	beside  output.Tee      // gets what the view gets
	store   *history.Store  // nil = not recorded
	resumed *history.Record // of the same run, whose process was lost; nil: none
	failed  bool            // on every host

	loginLog *os.File // nil = none
}

func (t *task) close() {
	if t.reach != nil {
		t.reach.Close()
	}
	if t.office != nil {
		t.office.close()
	}
	if t.input != nil {
		t.input.Close()
	}
	if t.loginLog != nil {
		t.loginLog.Close()
	}
}

// task determines hosts, command and routes.
func (f *runFlags) task(ctx context.Context, sys System, store *history.Store, flags *pflag.FlagSet, args []string) (_ *task, err error) {
	if f.rerun != "" {
		if args, err = f.again(sys, store, flags, args); err != nil {
			return nil, err
		}
	}
	words := strings.Join(args, " ")
	t := &task{}
	p := reach.Params{Params: f.connection.params(sys), Engine: reach.Engine(f.engine), NoKillSession: f.noRemoteKill}
	p.ConnectTimeout, p.AcceptNew, p.Command, p.Warnings = time.Duration(f.connectTimeout), f.acceptNew, words, sys.Stderr
	if f.loginLog != "" {
		if t.loginLog, err = os.OpenFile(f.loginLog, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			return nil, err
		}
		p.LoginLog = t.loginLog
	}
	p.Person = f.person
	if password := f.secrets.Login(); password != nil {
		p.Password = password
	}
	t.reach, err = reach.New(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.hosts, err = f.selection.hosts(ctx, sys, store, t.reach.Router); err != nil {
		return nil, err
	}
	if f.list {
		return t, nil
	}
	if f.job.given() {
		err = f.travelling(t.hosts)
	} else {
		err = t.reach.Check(ctx, t.hosts)
	}
	if err != nil {
		return nil, err
	}
	if f.dialogue != nil {
		t.command = fleet.Command{Line: "sftp", Dialogue: f.dialogue(len(t.hosts))}
	} else if t.command, err = f.remoteCommand(sys, words, args); err != nil {
		return nil, err
	}
	t.command.Text = words
	t.input, _ = t.command.Input.(*fleet.Spool)
	if err = f.expand(ctx, t, args); err != nil {
		return nil, err
	}
	if f.script != "" {
		t.command.Text = strings.TrimSpace(filepath.Base(f.script) + " " + words)
	}
	if f.noRecord || f.every > 0 {
		return t, nil
	}
	t.store = store
	t.how, err = f.how(flags, args)
	return t, err
}

// remoteCommand returns the command for the hosts.
func (f *runFlags) remoteCommand(sys System, words string, args []string) (fleet.Command, error) {
	if f.script != "" {
		script, program, err := readScript(f.script, args)
		if err != nil {
			return fleet.Command{}, err
		}
		if !f.expansion.on {
			var stdin io.Reader
			if f.stdin {
				stdin = sys.Stdin
			}
			return scriptCommand(program, stdin), nil
		}
		f.expansion.script = script // of which each host gets a program of its own
	} else if strings.TrimSpace(words) == "" {
		return fleet.Command{}, usageError("write it after the flags: sshpace run -w HOSTS -- uptime", "no command given")
	}
	c := fleet.Command{Line: words, Terminal: f.tty}
	if f.stdin {
		c.Input = fleet.NewSpool(sys.Stdin)
	}
	return c, nil
}

// rebootTimeout is far more than a reboot takes: some servers test their memory first.
const rebootTimeout = 10 * time.Minute

// stopping is the message at the first signal.
const stopping = "sshpace: stopping, and ending the commands that still run; press Ctrl-C again to leave them running"

// run carries the task out.
func (t *task) run(ctx context.Context, sys System, f *runFlags) error {
	defer outlive()()

	untune := fanout.Tune(sys.Getenv, t.command)
	defer untune()
	first, confirmed := func() { sys.screen().Notice(stopping) }, f.pace.limit(sys.Getenv)
	if t.office != nil {
		first = func() {} // it says more
		if t.office.client != nil {
			confirmed = 0
		}
	}
	drain, hard, stop := sys.Signals.Interrupts(ctx, first)
	defer stop()
	if err := output.Confirm(drain, confirmed, t.command.Text, t.hosts); err != nil {
		return interrupted(drain, ignoreCancel(err))
	}
	executor, err := fleet.Executor(nil), error(nil)
	if t.office == nil {
		executor, err = t.connecting(drain, sys, f)
	}
	if err == nil && f.detach {
		err = t.readInput(drain)
	}
	if err != nil {
		return interrupted(drain, ignoreCancel(err))
	}
	f.view.drain = drain
	f.view.Confirm = f.pace.question(drain, sys.screen())
	summary, err := t.repeat(hard, sys, f, f.params(drain), executor)
	t.failed = summary.Failed == len(t.hosts)
	if err == nil && t.input != nil {
		err = t.input.Err()
	}
	if drain.Err() != nil {
		return interrupted(drain, ignoreCancel(err))
	}
	end := output.Ending{Summary: summary, Err: err, Recorded: t.store != nil, Files: f.view.Files, MaxRC: f.maxrc}
	if t.resumed != nil {
		end.Run = t.resumed.ID
	}
	return end.Verdict()
}

// params returns how hosts are run.
func (f *runFlags) params(drain context.Context) fanout.Params {
	p := fanout.Params{
		Pace:   f.pace.Pace,
		Fanout: f.fanout, CommandTimeout: time.Duration(f.timeout), Drain: drain, ReservedFDs: f.view.FDs(),
		RetryFor: time.Duration(f.retryFor), RetryDown: f.retryFor > 0, MaxOutput: int64(f.maxOutput),
	}
	if f.reboot {
		p.CommandTimeout = cmp.Or(p.CommandTimeout, rebootTimeout)
	}
	return p
}

// connecting returns the Executor that logs in to the hosts.
func (t *task) connecting(drain context.Context, sys System, f *runFlags) (executor fleet.Executor, err error) {
	f.secrets.Ahead = f.detach
	if executor = t.shells; executor == nil {
		executor, err = f.secrets.Over(drain, sys.screen(), t.reach)
	}
	if f.reboot {
		executor = &reboot.Executor{Executor: executor, Plain: t.reach, Waiting: func() { sys.screen().Notice("sshpace: waiting until hosts are back; press Ctrl-C to stop that") }}
	}
	if t.own != nil {
		executor = expand.Executor{Executor: executor, Of: t.own}
	}
	f.view.Naming = t.reach.Naming
	t.reach.Warm(drain, t.hosts)
	return executor, err
}

// repeat runs the command once, or every so often. Between two runs connections stay open.
func (t *task) repeat(hard context.Context, sys System, f *runFlags, p fanout.Params, executor fleet.Executor) (summary fleet.Summary, err error) {
	if f.every == 0 {
		return t.once(hard, sys, f, p, executor)
	}
	kept := fanout.Keepable(len(t.hosts))
	t.reach.Keep(kept)
	p.ReservedFDs += kept
	for n := 1; ; n++ {
		next := time.Now().Add(time.Duration(f.every))
		if summary, err = t.once(hard, sys, f, p, executor); err != nil || n == f.count || !sched.Until(p.Drain, next) {
			return summary, err
		}
		p.ReservedFDs = f.view.FDs() // the kept ones are open
	}
}

// once runs the command on all hosts.
func (t *task) once(hard context.Context, sys System, f *runFlags, p fanout.Params, executor fleet.Executor) (fleet.Summary, error) {
	sink, err := f.view.sink(sys.views(), t.hosts)
	if err != nil {
		return fleet.Summary{}, err
	}
	recorder, err := t.record(sys)
	if err != nil {
		return fleet.Summary{}, err
	}
	p.ID = recorder.ID
	view := append(output.Tee{sink}, t.beside...)
	all := recorder.Beside(view)
	if t.office != nil {
		if executor, all, err = t.office.open(hard, &p, recorder, view); err != nil {
			return fleet.Summary{}, errors.Join(err, recorder.Drop())
		}
		hard = context.WithoutCancel(hard) // the office leaves the job
	}
	if f.detach {
		all = output.Tee{all, &leaving{sys: sys, drain: p.Drain, record: recorder, quiet: f.view.Quiet, way: f.way}}
	}
	summary, err := fanout.Run(hard, p, t.hosts, t.command, executor, all)
	if lost := recorder.Close(p.Drain); lost != nil {
		fmt.Fprintf(sys.Stderr, "sshpace: warning: the record of this run is incomplete: %s\n", oneLine(lost.Error()))
	}
	if t.office != nil {
		err = cmp.Or(t.office.left(recorder.ID), err)
	}
	return summary, err
}

// record begins the record of the run, or continues that of another process.
func (t *task) record(sys System) (*history.Recorder, error) {
	if t.resumed != nil {
		return t.store.Rewrite(t.resumed)
	}
	return history.Keep(t.store, t.how, sys.Stderr)
}

// ignoreCancel drops the errors that an interrupt causes.
func ignoreCancel(err error) error {
	if _, caught := errors.AsType[*proc.SignalError](err); caught || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
