// Package hostkeys measures the cost of a known_hosts file for each login.
package hostkeys

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/stats"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/sys/proc"
)

// DefaultRounds are enough for intervals of a few percent.
const DefaultRounds = 20

// Options of a measurement.
type Options struct {
	SSH      string                // the ssh program; empty: the one in PATH
	Dir      string                // a private directory for the variants of the file
	Rounds   sched.Rounds          // connections per variant; none means 20
	Progress func(done, total int) // total is 0 with a budget
	// Brief measures ssh only, with the file's own layout and the split one.
	Brief bool
}

// Cost is the cost of a known_hosts file for each connection.
type Cost struct {
	File        string    `json:"file"`
	Lines       int       `json:"lines"`        // readable lines
	HashedLines int       `json:"hashed_lines"` // of them
	Bytes       int64     `json:"file_bytes"`
	Rounds      int       `json:"-"`
	OpenSSH     []SSHCost `json:"openssh"`
	IndexCost
}

// SSHCost is the cost of one layout of the file for OpenSSH.
type SSHCost struct {
	Layout         string `json:"layout"`           // "split", "plain" or "hashed"
	AsItIs         bool   `json:"as_it_is"`         // the layout that the file has
	UpdateHostKeys bool   `json:"update_host_keys"` // ssh's default for ~/.ssh/known_hosts
	// CPU is the user and system time of one ssh process that logs in and runs nothing. Extra is
	// the part due to the file: the difference to the split layout in the same round. Nanoseconds,
	// medians with 95 % intervals.
	CPU   stats.Interval `json:"cpu_ns"`
	Extra stats.Interval `json:"extra_ns"`
}

// IndexCost is the cost of the file for a program that uses package index.
type IndexCost struct {
	Load   stats.Interval `json:"index_load_ns"`   // once: reading and indexing
	Lookup stats.Interval `json:"index_lookup_ns"` // per name, each name for the first time
	Names  int            `json:"index_names"`     // how many names were looked up
}

// benchName is the name of the server in all variants of the file.
const benchName = "sshpace-known-hosts-bench"

// Measure runs the real ssh against its own server on loopback, with the file in its plain, hashed
// and split layouts, round by round, so that other work of the machine hits all of them alike. The
// file itself is only read.
func Measure(ctx context.Context, file string, o Options) (Cost, error) {
	o.Rounds = cmp.Or(o.Rounds, sched.Rounds{Count: DefaultRounds})
	info, err := os.Stat(file)
	if err != nil {
		return Cost{}, err
	}
	x := index.Open(file)
	t := x.Tables()[0]
	if problems := x.Problems(); len(problems) > 0 {
		return Cost{}, errors.Join(problems...)
	}
	_, hashed := t.Count()
	c := Cost{File: file, Lines: len(t.Lines()), HashedLines: hashed, Bytes: info.Size()}
	server, err := startBenchServer()
	if err != nil {
		return c, err
	}
	defer server.Close()
	layouts, err := writeLayouts(o.Dir, t, server.hostKey)
	if err != nil {
		return c, err
	}
	if o.Brief {
		layouts = slices.DeleteFunc(layouts, func(l layout) bool { return l.name != "split" && !l.asItIs })
	}
	c.OpenSSH, c.Rounds, err = measureSSH(ctx, o, server, layouts)
	if err == nil && !o.Brief {
		c.IndexCost = measureIndex(file, t, c.Rounds)
	}
	return c, err
}

// layout is one way to keep the same lines.
type layout struct {
	name   string
	file   string
	asItIs bool
}

// writeLayouts writes the file in each layout, with the line of the server that ssh will connect
// to.
func writeLayouts(dir string, t *index.Table, key ssh.PublicKey) ([]layout, error) {
	plain, hashed := rewritten(t, plainHosts), rewritten(t, hashedHosts)
	own := benchName + " " + knownhosts.MarshalKey(key) + "\n"
	ownHashed := knownhosts.HashName(benchName) + " " + knownhosts.MarshalKey(key) + "\n"
	_, count := t.Count()
	mostlyHashed := count > len(t.Lines())/2
	layouts := []layout{
		{"split", filepath.Join(dir, "split"), false},
		{"plain", filepath.Join(dir, "plain"), !mostlyHashed},
		{"hashed", filepath.Join(dir, "hashed"), mostlyHashed},
	}
	return layouts, errors.Join(
		os.WriteFile(layouts[0].file, []byte(own), 0o600),
		os.WriteFile(layouts[1].file, []byte(plain+own), 0o600),
		os.WriteFile(layouts[2].file, []byte(hashed+ownHashed), 0o600),
	)
}

// rewritten writes all lines with other host fields; hosts returns the fields of the lines that
// replace l.
func rewritten(t *index.Table, hosts func(l knownhosts.Line) []string) string {
	var text strings.Builder
	for _, l := range t.Lines() {
		for _, field := range hosts(l) {
			l.Hosts = field
			text.WriteString(l.String() + "\n")
		}
	}
	return text.String()
}

// plainHosts gives a hashed line a name of usual length.
func plainHosts(l knownhosts.Line) []string {
	if !l.Hashed() {
		return []string{l.Hosts}
	}
	return []string{fmt.Sprintf("host%06d.example.com", l.Number)}
}

// hashedHosts hashes every name of a plain line, each on its own line, as ssh-keygen -H does.
func hashedHosts(l knownhosts.Line) []string {
	if l.Hashed() || l.Pattern {
		return []string{l.Hosts}
	}
	var fields []string
	for name := range strings.SplitSeq(l.Hosts, ",") {
		fields = append(fields, knownhosts.HashName(name))
	}
	return fields
}

// measureSSH logs in to the server, in every round once with each layout and setting.
func measureSSH(ctx context.Context, o Options, server *benchServer, layouts []layout) (costs []SSHCost, rounds int, err error) {
	var files []string
	for _, update := range []bool{true, false} {
		for _, l := range layouts {
			costs = append(costs, SSHCost{Layout: l.name, AsItIs: l.asItIs, UpdateHostKeys: update})
			files = append(files, l.file)
		}
	}
	cpu := make([][]float64, len(costs))
	total, all := o.Rounds.Count, []int(nil)
	if o.Rounds.Budget > 0 {
		total = 0
	}
	for i := range costs {
		all = append(all, i)
	}
	o.Rounds.Count++ // the first one fills caches and is not counted
	err = sched.Loop[int]{Rounds: o.Rounds, Due: func(round int) []int {
		if rounds = round; o.Progress != nil && round > 0 {
			o.Progress(round-1, total)
		}
		return all
	}, Take: func(round, i int) error {
		spent, err := loginCPU(ctx, o.SSH, server, files[i], costs[i].UpdateHostKeys)
		if err == nil && round > 0 {
			cpu[i] = append(cpu[i], float64(spent))
		}
		return err
	}}.Run(ctx)
	if err = cmp.Or(context.Cause(ctx), err); err != nil { // an end caused by ctx is not a failure
		return nil, 0, err
	}
	for i := range costs {
		costs[i].CPU = stats.MedianInterval(cpu[i])
		split := cpu[i-i%len(layouts)]
		costs[i].Extra = stats.MedianInterval(differences(cpu[i], split))
	}
	return costs, rounds, nil
}

func differences(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// loginCPU returns the processor time of one ssh that logs in with strict host keys.
func loginCPU(ctx context.Context, program string, server *benchServer, file string, update bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if program == "" {
		program = "ssh"
	}
	updateHostKeys := "no"
	if update {
		updateHostKeys = "yes"
	}
	flags := conf.Flags{Config: "none", Port: server.port(), User: "bench", Settings: []string{
		"HostKeyAlias=" + benchName, "UserKnownHostsFile=" + file, "GlobalKnownHostsFile=none", "StrictHostKeyChecking=yes",
		"UpdateHostKeys=" + updateHostKeys, "BatchMode=yes", "IdentityAgent=none", "IdentityFile=none", "ControlPath=none", "LogLevel=ERROR",
	}}
	cmd := exec.CommandContext(ctx, program, append(flags.Options(), "127.0.0.1", "true")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := proc.Run(cmd); err != nil {
		return 0, fmt.Errorf("%s with %s: %w: %s", program, file, err, strings.TrimSpace(stderr.String()))
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// measureIndex loads the file several times, and looks up its names, each for the first time.
func measureIndex(file string, t *index.Table, rounds int) IndexCost {
	names := someNames(t, 1000)
	var load, lookup []float64
	for range rounds {
		start := time.Now()
		x := index.Open(file)
		x.Tables()
		loaded := time.Now()
		for _, name := range names {
			x.Lookup(name, 0)
		}
		load = append(load, float64(loaded.Sub(start)))
		lookup = append(lookup, float64(time.Since(loaded))/float64(max(1, len(names))))
	}
	return IndexCost{Load: stats.MedianInterval(load), Lookup: stats.MedianInterval(lookup), Names: len(names)}
}

// someNames returns up to n names to look up: of the file, or invented ones where it hides them.
func someNames(t *index.Table, n int) []string {
	names := t.Names()
	names = names[:min(n, len(names))]
	for i := 0; len(names) < min(n, len(t.Lines())); i++ {
		names = append(names, fmt.Sprintf("host%06d.example.com", i))
	}
	return names
}
