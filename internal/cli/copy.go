package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/fleet/copy"
	"sshpace/internal/sys/safedir"
)

// copyFlags are the flags of copy and fetch.
type copyFlags struct {
	runFlags
	rate     byteLimit
	noVerify bool
	compare  bool
}

func (f *copyFlags) registerAll(flags *pflag.FlagSet) {
	f.runFlags.register(flags)
	flags.Var(&f.rate, "rate", "bytes per second of all hosts together, such as 10M; 0 = as fast as it goes")
	flags.BoolVar(&f.noVerify, "no-verify", false, "do not compare checksums of what has arrived")
	flags.BoolVar(&f.compare, "checksum", false, "leave alone what has the same checksum; without it what has the same size and time")
}

func (f *copyFlags) options() copy.Options {
	o := copy.Options{NoVerify: f.noVerify, Compare: f.compare}
	if f.rate > 0 {
		o.Limit = copy.NewLimiter(int64(f.rate))
	}
	return o
}

func newCopyCommand(sys System) *cobra.Command {
	f := copyFlags{}
	cmd := &cobra.Command{
		Use:   "copy -w HOSTS [flags] SRC... :DEST",
		Short: "Copy files to many hosts at once",
		Long: `copy puts files, folders with all that is in them, and symbolic links onto every host over
SFTP, with modes and times. DEST is a folder where it is one on the host, ends with /, or
there are several SRC; %h in SRC and DEST is the name of the host. SRC/ is what is in the
folder, :~user/DEST is in the home folder of that user.

A file is written beside its place, compared by the host's cksum, and put into place in one
step: whoever reads it sees the old or the new one. Files with the same size and time are
left alone; a large file that was interrupted is resumed if it has not changed. Several
copies into one place at once do not disturb each other. Many small files go through the
host's tar, which is a third of the work for the host.

Where an account runs no commands, as one for SFTP only, files are compared by reading them
back, and the result says so. Folders on the host get the mode and time of the original,
except DEST itself for SRC/. Set-user-ID bits of files, owners, pipes and devices are not
copied.`,
		Example: `  sshpace copy -w 'web[1-20]' nginx.conf :/etc/nginx/
  sshpace copy -w @db certs/%h.pem :/etc/ssl/host.pem
  sshpace copy -w @web --rate 20M site :/srv/
  sshpace copy -w @last:failed site :/srv/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.copy(cmd.Context(), sys, cmd.Flags(), args)
		},
	}
	f.registerAll(cmd.Flags())
	completeSets(cmd, sys, &f.connection)
	return cmd
}

func (f *copyFlags) copy(ctx context.Context, sys System, flags *pflag.FlagSet, args []string) error {
	usage := "write it as sshpace copy -w HOSTS SRC... :DEST"
	if f.list {
		return runRun(ctx, sys, &f.runFlags, flags, args)
	}
	if len(args) < 2 {
		return usageError(usage, "copy needs files and a place on the hosts")
	}
	dest, ok := strings.CutPrefix(args[len(args)-1], ":")
	if !ok {
		return usageError(fmt.Sprintf("write :%s", args[len(args)-1]), "%q is not a remote path", args[len(args)-1])
	}
	names := args[:len(args)-1]
	sources := copy.NewSources(names)
	left, err := sources.Check()
	if err != nil {
		return &Error{Err: err, Hint: "name files and folders that can be read", Code: ExitUsage}
	}
	for _, name := range left {
		fmt.Fprintf(sys.Stderr, "sshpace: warning: %s is no file, folder or link, and left out\n", oneLine(name))
	}
	up := copy.Upload{Options: f.options(), Dest: dest, Sources: sources.Of}
	f.dialogue = up.Dialogue
	return runRun(ctx, sys, &f.runFlags, flags, append([]string{"copy"}, args...))
}

func newFetchCommand(sys System) *cobra.Command {
	f := copyFlags{}
	maxSize := byteLimit(10 << 30)
	cmd := &cobra.Command{
		Use:   "fetch -w HOSTS [flags] :SRC... DIR",
		Short: "Fetch files from many hosts at once",
		Long: `fetch copies files, folders with all that is in them, and symbolic links from every host
over SFTP, with modes and times, into the folder DIR/HOST; %h in SRC is the name of the
host. :SRC/ is what is in the folder, :~user/SRC is in the home folder of that user. Files
that are there already with the same size and time are left alone.

A file that grows while it is fetched, as a log does, arrives as it was when fetch saw it.
Files are compared by the host's cksum; where the account runs no commands they are not,
and the result says so.

Hosts are not trusted: a host cannot write outside its folder, send more than --max-size or
more than a million names, or leave set-user-ID bits. Links that lead out of the folder, or
have .. behind another name, are skipped and reported. DIR/HOST must be yours: fetch refuses
a folder that other users can change.`,
		Example: `  sshpace fetch -w 'web[1-20]' :/var/log/nginx/error.log logs
  sshpace fetch -w 'web[1-20]' :/var/log/nginx/ logs
  sshpace fetch -w @db :/etc/postgresql backup`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.fetch(cmd.Context(), sys, cmd.Flags(), args, int64(maxSize))
		},
	}
	f.registerAll(cmd.Flags())
	completeSets(cmd, sys, &f.connection)
	cmd.Flags().Var(&maxSize, "max-size", "bytes of each host, at most; 0 = any number")
	return cmd
}

func (f *copyFlags) fetch(ctx context.Context, sys System, flags *pflag.FlagSet, args []string, maxSize int64) error {
	usage := "write it as sshpace fetch -w HOSTS :SRC... DIR, with a colon before what is on the hosts"
	if f.list {
		return runRun(ctx, sys, &f.runFlags, flags, args)
	}
	if len(args) < 2 {
		return usageError(usage, "fetch needs files on the hosts and a folder here")
	}
	down := copy.Download{Options: f.options(), Dir: args[len(args)-1], MaxSize: maxSize}
	for _, arg := range args[:len(args)-1] {
		name, ok := strings.CutPrefix(arg, ":")
		if !ok {
			return usageError(usage, "%q is no name on the hosts", arg)
		}
		down.Sources = append(down.Sources, name)
	}
	if strings.HasPrefix(down.Dir, ":") {
		return usageError(usage, "%q is no folder here", down.Dir)
	}
	if _, err := safedir.ResolveAll(down.Dir); err != nil {
		return &Error{Err: err, Hint: "name a folder of yours that others cannot change", Code: ExitUsage}
	}
	f.dialogue = down.Dialogue
	return runRun(ctx, sys, &f.runFlags, flags, append([]string{"fetch"}, args...))
}
