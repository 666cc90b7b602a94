//go:build linux

package cli

import (
	"math"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
)

// benchFlags are the flags of `sshpace bench`.
type benchFlags struct {
	direction, data, engine, server string
	ssh, sshd                       string
	ciphers, macs, kex              []string
	policy                          string
	budget, connect                 seconds
	precision                       percent
	rounds, runs                    int
	seed                            uint64
	exhaustive, list, json, quiet   bool
	all                             bool
	size                            string
	out, resume                     string
	connections                     int
	connection                      connectionFlags
	methods                         methodFlags
}

const defaultBudget = 60 * time.Second

// choices are flags with a fixed set of values; open ones may be left empty.
var choices = []struct {
	flag   string
	value  func(f *benchFlags) string
	values []string
	open   bool
}{
	{"direction", func(f *benchFlags) string { return f.direction }, []string{"upload", "download", "both"}, false},
	{"data", func(f *benchFlags) string { return f.data }, []string{"zero", "random"}, false},
	{"engine", func(f *benchFlags) string { return f.engine }, []string{"openssh", "native"}, true},
	{"server", func(f *benchFlags) string { return f.server }, []string{"openssh", "native"}, true},
}

// maxRepeats bounds --rounds and --runs: nobody waits for more.
const maxRepeats = 1_000_000

// check finds flags that make no sense, alone or with a host.
func (f *benchFlags) check(hostGiven bool) error {
	for _, c := range choices {
		if value := c.value(f); !slices.Contains(c.values, value) && !(c.open && value == "") {
			return usageError(fault.Near("--"+c.flag+" ", value, c.values, "use "+strings.Join(c.values, " or ")), "--%s %q", c.flag, value)
		}
	}
	switch {
	case f.budget <= 0 || f.connect <= 0:
		return usageError("such as 90s or 5m", "--budget and --connect-timeout must be longer than nothing")
	case f.rounds < 0 || f.runs < 1 || !(f.precision >= 0) || math.IsInf(float64(f.precision), 0):
		return usageError("see sshpace bench --help", "--rounds, --runs and --precision must be positive")
	case f.rounds > maxRepeats || f.runs > maxRepeats:
		return usageError("--resume goes on with a run that has ended", "--rounds and --runs may be %d at most", maxRepeats)
	case hostGiven && (f.engine == "native" || f.server != ""):
		return usageError("leave them out, or leave the host out", "--engine native and --server are for the private server on loopback")
	case hostGiven && f.exhaustive:
		return usageError("leave the host out to measure on loopback", "--exhaustive would make thousands of logins on %s", "a host of yours")
	case hostGiven && f.data == "random" && f.direction != "upload":
		return usageError("leave --data out: to a cipher zeros are like any other data", "--data random from a host would measure the host's /dev/urandom")
	case f.out != "" && f.resume != "":
		return usageError("--resume appends to its own file", "--out and --resume exclude each other")
	}
	return nil
}

// idle are flags that say nothing beside others; each line names flags, when
// that is so, and why.
var idle = []struct {
	flags []string
	when  func(f *benchFlags, hostGiven bool) bool
	why   string
}{
	{[]string{"budget", "rounds", "precision"}, func(f *benchFlags, _ bool) bool { return f.exhaustive }, "a run with --exhaustive ends after --runs"},
	{[]string{"size", "runs"}, func(f *benchFlags, _ bool) bool { return !f.exhaustive }, "it is for --exhaustive"},
	{[]string{"budget", "precision"}, func(f *benchFlags, _ bool) bool { return f.rounds > 0 }, "a run with --rounds ends after them"},
	{[]string{"ssh"}, func(f *benchFlags, _ bool) bool { return f.engine == "native" }, "--engine native starts no ssh"},
	{[]string{"sshd"}, func(f *benchFlags, _ bool) bool { return f.server == "native" }, "--server native starts no sshd"},
	{ofModes, func(f *benchFlags, _ bool) bool { return len(f.methods.modes) == 0 }, "it is for --mode"},
	{ofMethods, func(f *benchFlags, _ bool) bool { return !f.methods.asked() }, "it is for --mode and --pairs"},
	{[]string{"sshd"}, func(_ *benchFlags, hostGiven bool) bool { return hostGiven }, "a host has its own"},
	{[]string{"all"}, func(f *benchFlags, hostGiven bool) bool { return !hostGiven && f.resume == "" }, "on loopback everything is measured"},
}

// checkIdle refuses flags that were given and would do nothing.
func (f *benchFlags) checkIdle(given func(flag string) bool, hostGiven bool) error {
	for _, line := range idle {
		for _, flag := range line.flags {
			if given(flag) && line.when(f, hostGiven) {
				return usageError("leave it out", "--%s has no meaning here: %s", flag, line.why)
			}
		}
	}
	return nil
}

func (f *benchFlags) directions() []record.Direction {
	if f.direction == "both" {
		return []record.Direction{record.Upload, record.Download}
	}
	return []record.Direction{record.Direction(f.direction)}
}

func (f *benchFlags) selection() testbed.Selection {
	return testbed.Selection{Patterns: map[alg.Kind][]string{alg.Cipher: f.ciphers, alg.MAC: f.macs, alg.Kex: f.kex}, Policy: f.policy}
}
