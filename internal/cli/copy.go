package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/fanout/copy"
	"sshpace/internal/fanout/sudo"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/sys/safedir"
)

// copyFlags are the flags of copy and fetch.
type copyFlags struct {
	runFlags
	rate     byteRate
	noVerify bool
	compare  bool
	exclude  []string
	dry      bool // what would change is shown
}

func (f *copyFlags) registerAll(flags *pflag.FlagSet) {
	f.runFlags.register(flags)
	f.secrets.register(flags)
	f.registerDetach(flags)
	flags.Lookup("sudo").Usage = "write or read files as this user by sudo, whose password is asked for once, when the first host wants one, or comes from --password-command"
	f.view.Files = true
	flags.Var(&f.rate, "rate", "bytes per second of all hosts together, such as 10M or 10MB/s; 0 = no limit")
	flags.BoolVar(&f.noVerify, "no-verify", false, "do not compare checksums of the copied files")
	flags.StringArrayVar(&f.exclude, "exclude", nil, "leave out files and directories with names such as *.bak, cache/ or /site/tmp, as rsync does; repeatable")
	flags.BoolVar(&f.dry, "dry-run", false, "show which files would be changed, hosts with the same changes together, and change nothing")
	flags.BoolVar(&f.compare, "checksum", false, "skip files with the same checksum, instead of those with the same size and time")
}

func (f *copyFlags) options() (copy.Options, error) {
	exclude, err := wildcard.NewPaths(f.exclude)
	if err != nil {
		return copy.Options{}, usageError("such as --exclude '*.bak' or --exclude cache/", "--exclude: %v", err)
	}
	o := copy.Options{NoVerify: f.noVerify, Compare: f.compare, Exclude: exclude, Dry: f.dry}
	if f.dry {
		f.noRecord = true
		f.view.Gather = f.view.Diff == "" && !f.view.JSON && !f.view.Table && f.view.Sort == ""
		f.view.Mask = f.view.Gather || f.view.Diff != ""
	}
	if f.expansion.on {
		o.Naming = f.expansion.text
	}
	if f.rate > 0 {
		o.Limit = copy.NewLimiter(int64(f.rate))
	}
	return o, nil
}

// placing are the flags of copy alone.
type placing struct {
	copy.Placing
	mode fileMode
}

func (p *placing) register(flags *pflag.FlagSet) {
	flags.BoolVar(&p.Mkdir, "mkdir", false, "make missing directories above DEST, for the account that writes, by its umask")
	flags.StringVar(&p.Backup, "backup", "", "keep a file that is replaced beside the new one, with this at the end of its name")
	flags.Lookup("backup").NoOptDefVal = "~"
	flags.StringVar(&p.Owner, "owner", "", "user or USER:GROUP of the files, by name or number; without GROUP that of the user")
	flags.Var(&p.mode, "mode", "mode of the files in octal, such as 640 (default as here)")
}

// check completes the flags.
func (p *placing) check(user string) error {
	who, group, named := strings.Cut(p.Owner, ":")
	bad := cmp.Or(sudo.CheckUser(who), sudo.CheckUser(group))
	switch {
	case p.Owner != "" && (who == "" || named && group == "" || bad != nil || strings.Contains(p.Owner, "#")):
		return usageError("write it as --owner USER or --owner USER:GROUP", "--owner %q", p.Owner)
	case strings.ContainsAny(p.Backup, "/\x00"):
		return usageError("the backup stays in the directory of its file: --backup=.old", "--backup=%s", p.Backup)
	}
	p.Exact, p.AsRoot = p.Owner != "" || p.mode != 0, user == "root" || user == "#0"
	return nil
}

// fileMode is a flag for a mode in octal.
type fileMode fs.FileMode

func (m *fileMode) String() string {
	if *m == 0 {
		return ""
	}
	return fmt.Sprintf("%03o", uint32(*m))
}
func (m *fileMode) Type() string { return "MODE" }

// Set reads a mode.
func (m *fileMode) Set(text string) error {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n == 0 || n > 0o777 {
		return errors.New("it is not an octal number from 1 to 777")
	}
	*m = fileMode(n)
	return nil
}

func newCopyCommand(sys System) *cobra.Command {
	f, how, up := copyFlags{}, placing{}, copy.Upload{}
	cmd := page("copy", &cobra.Command{
		RunE: f.detached(sys, func(cmd *cobra.Command, args []string) error {
			return f.copy(cmd.Context(), sys, cmd.Flags(), args, &how, up)
		}),
	})
	f.registerAll(cmd.Flags())
	how.register(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVar(&up.Delete, "delete", false, "delete in the copied directories on the host what SRC does not have, after everything was copied")
	flags.IntVar(&up.MaxDelete, "max-delete", 100, "with --delete: names of each host, at most; if there are more, none is deleted there")
	flags.StringVar(&up.Then, "then", "", "run this command, by sh, on hosts where something has changed")
	completeSets(cmd, sys, &f.connection)
	return cmd
}

func (f *copyFlags) copy(ctx context.Context, sys System, flags *pflag.FlagSet, args []string, how *placing, up copy.Upload) error {
	if f.list {
		return runRun(ctx, sys, &f.runFlags, flags, args)
	}
	if flags.Changed("max-delete") && !up.Delete {
		return usageError("such as --delete --max-delete 500", "--max-delete is for --delete")
	}
	if err := f.upload(sys, args, how, &up); err != nil {
		return err
	}
	return runRun(ctx, sys, &f.runFlags, flags, append([]string{"copy"}, args...))
}

// upload completes up from the arguments, and makes it what is done on the hosts.
func (f *copyFlags) upload(sys System, args []string, how *placing, up *copy.Upload) error {
	if len(args) < 2 {
		return usageError("write it as sshpace copy -w HOSTS SRC... :DEST", "copy needs files and a destination on the hosts")
	}
	if err := how.check(f.secrets.User); err != nil {
		return err
	}
	names, last := args[:len(args)-1], args[len(args)-1]
	dest, ok := strings.CutPrefix(last, ":")
	if !ok {
		hint := "write :" + last
		if at, path, scp := strings.Cut(last, ":"); scp && !strings.Contains(at, "/") {
			hint = "write it as sshpace copy -w " + shell.Word(at) + " " + strings.Join(names, " ") + " :" + path
		}
		return usageError(hint, "%q is not a remote path", last)
	}
	if up.Then != "" && reach.Engine(f.engine) == reach.OpenSSH {
		return usageError("leave --engine out: ssh opens one session, and the command needs another", "--then and --engine openssh exclude each other")
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	sources := copy.NewSources(names)
	sources.Naming, sources.Exclude, sources.Mode = options.Naming, options.Exclude, fs.FileMode(how.mode)
	left, err := sources.Check()
	if err != nil {
		return &Error{Err: err, Hint: "name files and directories that can be read", Code: ExitUsage}
	}
	for _, name := range left {
		fmt.Fprintf(sys.Stderr, "sshpace: warning: %s skipped: it is not a file, directory or link\n", oneLine(name))
	}
	up.Options, up.Placing, up.Dest, up.Sources = options, how.Placing, dest, sources.Of
	f.dialogue = func(hosts int) fleet.Dialogue { up.Hosts = hosts; return up.Dialogue }
	return nil
}

func newFetchCommand(sys System) *cobra.Command {
	f := copyFlags{}
	maxSize := byteLimit(10 << 30)
	cmd := page("fetch", &cobra.Command{
		RunE: f.detached(sys, func(cmd *cobra.Command, args []string) error {
			return f.fetch(cmd.Context(), sys, cmd.Flags(), args, int64(maxSize))
		}),
	})
	f.registerAll(cmd.Flags())
	completeSets(cmd, sys, &f.connection)
	cmd.Flags().Var(&maxSize, "max-size", "bytes of each host, at most; 0 = any number")
	return cmd
}

func (f *copyFlags) fetch(ctx context.Context, sys System, flags *pflag.FlagSet, args []string, maxSize int64) error {
	usage := "write it as sshpace fetch -w HOSTS :SRC... DIR, with a colon before paths on the hosts"
	if f.list {
		return runRun(ctx, sys, &f.runFlags, flags, args)
	}
	if len(args) < 2 {
		return usageError(usage, "fetch needs files on the hosts and a directory here")
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	down := copy.Download{Options: options, Dir: args[len(args)-1], MaxSize: maxSize}
	for _, arg := range args[:len(args)-1] {
		name, ok := strings.CutPrefix(arg, ":")
		if !ok {
			return usageError(usage, "%q is not a name on the hosts", arg)
		}
		down.Sources = append(down.Sources, name)
	}
	if strings.HasPrefix(down.Dir, ":") {
		return usageError(usage, "%q is not a directory here", down.Dir)
	}
	if f.expansion.on {
		down.Place = func(h host.Host) (dir, name string) {
			return filepath.Join(f.expansion.values.Path(down.Dir, h), output.FileName(h.String())), ""
		}
	} else if err := f.resolve(down.Dir); err != nil {
		return &Error{Err: err, Hint: "name a directory of yours that others cannot change", Code: ExitUsage}
	}
	f.dialogue = func(hosts int) fleet.Dialogue { down.Hosts = hosts; return down.Dialogue }
	return runRun(ctx, sys, &f.runFlags, flags, append([]string{"fetch"}, args...))
}

// resolve makes the directory for what is fetched, unless nothing is to be made.
func (f *copyFlags) resolve(dir string) error {
	if !f.dry {
		_, err := safedir.ResolveAll(dir)
		return err
	}
	if _, err := safedir.Resolve(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
