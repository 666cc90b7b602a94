//go:build linux

package campaign

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/bench/hostinfo"
	"sshpace/internal/bench/limits"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
	"sshpace/internal/sys/journal"
)

// MachineParams select the limits of this machine to measure.
type MachineParams struct {
	Limits  limits.Options // without DiskDir the file that is read is in the state directory
	OpenSSL string         // path; "" to search
	Tool    string         // for the record
	Output                 // Out - is standard output
}

// Machine measures the limits of this machine, until ctx ends, records and reports them.
func Machine(ctx context.Context, p MachineParams) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	file := &record.File{Environment: hostinfo.Describe(testbed.LoadLook)}
	_, file.Environment.Crypto = limits.FindOpenSSL(ctx, p.OpenSSL)
	host, _ := os.Hostname()
	file.Campaign = record.Campaign{Format: record.FormatVersion, Command: "limits", Tool: p.Tool, Started: time.Now().UTC(), Target: host}
	var err error
	file.Measurements, file.Findings, err = limits.Measure(ctx, p.Limits)
	switch {
	case err != nil:
		return fault.Usage("sshpace limits --list names the probes", "%s", err)
	case len(file.Measurements) == 0 && ctx.Err() != nil:
		return nil
	case len(file.Measurements) == 0:
		return noLimits(file.Findings)
	}
	if p.Out == "" {
		p.Out = filepath.Join(p.Store.Machines(), journal.Name(file.Campaign.Started, ""))
	}
	if err := store.Write(p.Stdout, p.Out, slices.Collect(file.Records())); err != nil {
		return err
	}
	shown := format.Limits(file, false, document.Commands{Report: document.Standard.Report + " " + p.Store.Word(p.Out)}, format.Output{})
	if p.Out == store.StandardOutput { // the report goes next to the records
		return format.Print(p.Stderr, shown, p.JSON)
	}
	if err := format.Print(p.Stdout, shown, p.JSON); err != nil {
		return err
	}
	format.Saved(p.Stderr, p.Store.Shown(p.Out))
	return nil
}

// prepare finds the programs, and makes the directories, before the work whose result goes there.
func (p *MachineParams) prepare(ctx context.Context) error {
	if p.Out != "" && p.Out != store.StandardOutput {
		if err := store.CheckNew(p.Out, store.AnotherName); err != nil {
			return err
		}
	}
	p.Limits.OpenSSL, _ = limits.FindOpenSSL(ctx, p.OpenSSL)
	if p.OpenSSL != "" && p.Limits.OpenSSL == "" {
		return fault.Usage("name the program with --openssl", "%s is not openssl", p.OpenSSL)
	}
	if p.Limits.DiskDir == "" {
		p.Limits.DiskDir = filepath.Dir(p.Store.Machines())
		if err := store.Make(p.Limits.DiskDir); err != nil && p.Out != "" {
			p.Limits.DiskDir = "" // the disk alone is left out
		}
	}
	if p.Out == "" {
		return store.Make(p.Store.Machines())
	}
	return nil
}

// noLimits explains why there is no result.
func noLimits(findings []record.Finding) error {
	var why []string
	for _, f := range findings {
		why = append(why, f.What+": "+f.Why)
	}
	return &fault.Error{What: "nothing was measured: " + strings.Join(why, "; "), Hint: "sshpace limits --list names the probes"}
}
