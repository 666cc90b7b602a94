package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/host"
	"sshpace/internal/hostset"
	"sshpace/internal/knownhosts"
)

func newKnownHostsCommand(sys System) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "known-hosts",
		Short: "Split, look up, check, pin and time known_hosts files",
		Long: `ssh reads every line of known_hosts at least twice per login, and computes a hash for
every hashed line. With thousands of hosts that is most of what a login costs.

These commands measure that (bench), do away with it (split), and look after the
files (lookup, lint, pin). None of them writes to the file that it reads.`,
		Example: `  sshpace known-hosts bench
  sshpace known-hosts split
  sshpace known-hosts lint
  sshpace known-hosts lookup db1.example.com
  sshpace known-hosts pin backup --to 198.51.100.7`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("see sshpace known-hosts --help", "unknown command %q", "known-hosts "+args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(
		newKnownHostsSplitCommand(sys),
		newKnownHostsLookupCommand(sys),
		newKnownHostsLintCommand(sys),
		newKnownHostsPinCommand(sys),
		newKnownHostsBenchCommand(sys),
	)
	return cmd
}

// knownHostsFiles are the files to read.
type knownHostsFiles []string

func (f *knownHostsFiles) register(flags *pflag.FlagSet) {
	flags.StringArrayVar((*[]string)(f), "known-hosts", nil, "file to read; repeatable, in the order in which ssh reads them (default ~/.ssh/known_hosts)")
}

// open makes an index of the files, which must all be there: a file that was
// named by mistake is not the same as one that knows nobody.
func (f knownHostsFiles) open(sys System) (*knownhosts.Index, error) {
	files := []string(f)
	if len(files) == 0 {
		own, err := sshFolder(sys, "known_hosts")
		if err != nil {
			return nil, err
		}
		files = []string{own}
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return nil, &Error{Err: err, Hint: "name the file with --known-hosts", Code: ExitUsage}
		}
	}
	x := knownhosts.Open(files...)
	for _, err := range x.Problems() {
		return nil, &Error{Err: err, Hint: "name another file with --known-hosts", Code: ExitUsage}
	}
	return x, nil
}

// sshFolder is a name in the user's ~/.ssh.
func sshFolder(sys System, name string) (string, error) {
	home := sys.Getenv("HOME")
	if home == "" {
		return "", usageError("set HOME, or name all files by flags", "no home directory")
	}
	return filepath.Join(home, ".ssh", name), nil
}

// hostFlags say which hosts a command is about.
type hostFlags struct {
	sets, files, exclude []string
}

func (f *hostFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.sets, "hosts", "w", nil, "hosts, such as web[01-20],db1; repeatable")
	flags.StringArrayVar(&f.files, "hosts-file", nil, "file with a host per line, such as root@db1 or [db1]:2222; - for standard input; repeatable")
	flags.StringArrayVarP(&f.exclude, "exclude", "x", nil, "hosts to leave out; repeatable")
}

// hosts returns the hosts; nil if none were named.
func (f *hostFlags) hosts(ctx context.Context, sys System) ([]host.Host, error) {
	if len(f.sets)+len(f.files) == 0 {
		return nil, nil
	}
	selection := hostset.Selection{Sets: f.sets, Exclude: f.exclude}
	for _, name := range f.files {
		file, err := readHostsFile(ctx, sys, name)
		if err != nil {
			return nil, &Error{Err: err, Hint: "one host per line, # starts a comment", Code: ExitUsage}
		}
		selection.Files = append(selection.Files, file)
	}
	hosts, err := selection.Hosts()
	if err != nil {
		return nil, &Error{Err: err, Hint: "hosts are written name, user@name, [name]:port or web[01-20]", Code: ExitUsage}
	}
	return hosts, nil
}

// readHostsFile reads a list of hosts; "-" is standard input.
func readHostsFile(ctx context.Context, sys System, name string) (*hostset.HostsFile, error) {
	var text []byte
	var err error
	if name == "-" {
		name = "standard input"
		text, err = readInput(ctx, sys.Stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	return hostset.ReadHosts(bytes.NewReader(bracketed.ReplaceAll(text, []byte("$1$2:$3"))), name)
}

// bracketed is a host as it stands in known_hosts, [name]:port, which a host set
// would take for a range of numbers.
var bracketed = regexp.MustCompile(`(?m)^([ \t]*(?:[^\s@]+@)?)\[([^\[\]:\s]*[^\[\]:\s0-9,/-][^\[\]:\s]*)\]:([0-9]+)`)

// readInput reads all of r, or gives up when ctx ends: someone at a terminal may
// press Ctrl-C instead of Ctrl-D.
func readInput(ctx context.Context, r io.Reader) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(r)
		done <- result{text, err}
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// knownNames are hosts in the form in which they stand in a file.
func knownNames(hosts []host.Host) []string {
	names := make([]string, 0, len(hosts))
	for _, h := range hosts {
		names = append(names, knownhosts.HostPort(h.Name, int(h.Port)))
	}
	return names
}

// progressLine says on stderr how far something has got, once it has taken a
// second and then every second.
type progressLine struct {
	w    io.Writer
	what string
	next time.Time
}

func newProgressLine(sys System, what string) *progressLine {
	return &progressLine{w: sys.Stderr, what: what, next: time.Now().Add(time.Second)}
}

func (p *progressLine) report(done, total int) {
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(time.Second)
		fmt.Fprintf(p.w, "sshpace: %d of %d %s\n", done, total, p.what)
	}
}

// writeDocument prints one JSON document, whose first field is its schema.
func writeDocument(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

// count is a number and its noun, in the plural where it must be.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
