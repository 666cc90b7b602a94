//go:build linux

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/measure/hostinfo"
	"sshpace/internal/measure/limits"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	render "sshpace/internal/show/report"
)

// machineFlags are the flags of `sshpace machine`.
type machineFlags struct {
	out, openssl, dir, size string
	only                    []string
	rounds                  int
	json, list              bool
}

func newMachineCommand(sys System) *cobra.Command {
	var f machineFlags
	cmd := &cobra.Command{
		Use:   "machine",
		Short: "Measure this machine's own limits: crypto, memory, pipe, loopback TCP, disk",
		Long: `Measures in about a minute what this machine can do at most: the cryptographic
primitives of its OpenSSL (with openssl speed), copying in memory, a pipe, TCP on
loopback, and reading a file with small and large blocks.

The result is recorded. Reports of this machine then show SSH's throughput as a
share of each ceiling, by the newest value of each, and name what limits it.`,
		Example: `  sshpace machine
  sshpace machine --only 'AES*' --only pipe*
  sshpace machine --json --out limits.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runMachine(cmd.Context(), sys, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "result file; - is standard output (default: a new one in the state folder)")
	flags.StringVar(&f.openssl, "openssl", "", "path of openssl")
	flags.StringVar(&f.dir, "disk-dir", "", "folder for the file that is read (default: the state folder)")
	flags.StringVar(&f.size, "disk-size", "256M", "size of that file")
	flags.StringArrayVar(&f.only, "only", nil, "only this probe; a name or a glob; repeatable")
	flags.IntVar(&f.rounds, "rounds", 3, "how often each is measured")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	flags.BoolVar(&f.list, "list", false, "print the names of the probes, and measure nothing")
	return cmd
}

func runMachine(ctx context.Context, sys System, f machineFlags) error {
	if f.list {
		for _, name := range limits.Names() {
			fmt.Fprintln(sys.Stdout, name)
		}
		return nil
	}
	o, err := f.options(ctx, sys)
	if err != nil {
		return err
	}
	file := &record.File{Environment: hostinfo.Describe(testbed.LoadLook)}
	_, file.Environment.Crypto = limits.FindOpenSSL(ctx, f.openssl)
	host, _ := os.Hostname()
	file.Campaign = record.Campaign{Format: record.FormatVersion, Tool: toolVersion(), Started: time.Now().UTC(), Target: host}
	drain, ctx, stop := interrupts(ctx, sys)
	defer stop()
	file.Measurements, file.Findings, err = limits.Measure(either(ctx, drain), o)
	if err != nil {
		return usageError("sshpace machine --list names the probes", "%s", err)
	}
	if len(file.Measurements) == 0 && drain.Err() != nil {
		return interrupted(drain, nil)
	}
	if len(file.Measurements) == 0 {
		return nothingMeasured(file.Findings)
	}
	name, err := f.save(sys, file)
	if err != nil {
		return err
	}
	if name == store.StandardOutput {
		sys.Stdout = sys.Stderr // what is shown goes beside the records
	}
	if err := render.Machine(sys.Stdout, file, f.json); err != nil {
		return err
	}
	if name != store.StandardOutput {
		fmt.Fprintf(sys.Stderr, "\nsaved: %s\n", name)
	}
	return interrupted(drain, nil)
}

// nothingMeasured says why there is no result.
func nothingMeasured(findings []record.Finding) error {
	var why []string
	for _, f := range findings {
		why = append(why, f.What+": "+f.Why)
	}
	return &Error{What: "nothing was measured: " + strings.Join(why, "; "), Hint: "sshpace machine --list names what else can be"}
}

// options checks the flags.
func (f machineFlags) options(ctx context.Context, sys System) (limits.Options, error) {
	o := limits.Options{Only: f.only, Rounds: f.rounds, DiskDir: f.dir}
	o.Progress = func(probe string) { fmt.Fprintf(sys.Stderr, "measuring %s\n", probe) }
	var err error
	if o.DiskBytes, err = unit.ParseBytes(f.size); err != nil {
		return o, usageError("such as --disk-size 256M", "--disk-%s", err)
	}
	switch {
	case f.rounds < 1:
		return o, usageError("1 or more", "--rounds %d", f.rounds)
	case f.json && f.out == store.StandardOutput:
		return o, usageError("leave one of them out", "--json and --out - both write to standard output")
	case f.out != "" && f.out != store.StandardOutput:
		if err := store.CheckNew(f.out, store.AnotherName); err != nil {
			return o, err
		}
	}
	o.OpenSSL, _ = limits.FindOpenSSL(ctx, f.openssl)
	if f.openssl != "" && o.OpenSSL == "" {
		return o, usageError("name the program with --openssl", "%s is no openssl", f.openssl)
	}
	if o.DiskDir == "" {
		o.DiskDir = filepath.Dir(store.Of(sys.Getenv).Machines())
		if err := store.Make(o.DiskDir); err != nil && f.out != "" {
			o.DiskDir = "" // the disk alone is left out
		}
	}
	if f.out == "" {
		err = store.Make(store.Of(sys.Getenv).Machines()) // before the work whose result goes there
	}
	return o, err
}

// save writes the record, and returns where to.
func (f machineFlags) save(sys System, file *record.File) (path string, err error) {
	if path = f.out; path == "" {
		path = filepath.Join(store.Of(sys.Getenv).Machines(), file.Campaign.Started.Format("20060102T150405.000Z")+".jsonl")
	}
	return path, store.Write(sys.Stdout, path, slices.Collect(file.Records()))
}
