//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sshpace/crosscheck/lab"
	"sshpace/internal/base/stats"
)

// subject is what is measured on both sides in one turn.
type subject struct {
	name    string
	every   int // rounds from one turn to the next; 0 is 1
	first   int // round of the first turn, so that no round has all that takes long
	most    int // turns; 0 is no limit
	measure func(ctx context.Context, s side) ([]reading, error)
}

// subjects are all that a user waits for or pays for.
func subjects(r *rig) []subject {
	return []subject{
		{name: "binary", most: 1, measure: size},
		{name: "start", measure: start},
		{name: "login", measure: r.login()},
		{name: "login -o", measure: r.login("-o", "KexAlgorithms=curve25519-sha256")},
		{name: "first login", measure: r.first},
		{name: "login counted", most: 1, measure: r.counted},
		{name: "100 hosts", measure: r.hundred},
		{name: "1,400 hosts", every: 3, first: 1, measure: r.thousands},
		{name: "copy 100M", measure: r.copy("100M")},
		{name: "fetch 100M", measure: r.fetch("100M")},
		{name: "copy 1000x10K", measure: r.copy("1000x10K")},
		{name: "fetch 1000x10K", measure: r.fetch("1000x10K")},
		{name: "known-hosts split", every: 2, measure: r.split},
		{name: "known-hosts lookup", measure: r.lookup},
		{name: "bench loopback", every: 6, first: 2, measure: r.benchLoopback},
		{name: "bench host", every: 6, first: 5, measure: r.benchHost},
		{name: "report", every: 2, first: 1, measure: r.report()},
		{name: "report page", every: 2, first: 1, measure: r.report("--format", "html")},
	}
}

// repeated is how often a short command runs in a turn, of which the median counts.
const repeated = 7

// several runs a short command and reads the medians of its cost.
func several(run func() (lab.Cost, error)) ([]reading, error) {
	var walls, cpus []float64
	for range repeated {
		c, err := run()
		if err != nil {
			return nil, err
		}
		walls, cpus = append(walls, ms(c.Wall)), append(cpus, ms(c.CPU))
	}
	return []reading{{figure: "wall", unit: "ms", value: stats.Median(walls)}, {figure: "CPU", unit: "ms", value: stats.Median(cpus)}}, nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// size of the program.
func size(_ context.Context, s side) ([]reading, error) {
	info, err := os.Stat(s.binary)
	if err != nil {
		return nil, err
	}
	return []reading{{figure: "size", unit: "MB", value: float64(info.Size()) / 1e6, exact: true}}, nil
}

func start(ctx context.Context, s side) ([]reading, error) {
	return several(func() (lab.Cost, error) { return s.measure(ctx, "version") })
}

// onFleet are the arguments of a run that says as little as possible.
func onFleet(config string, hosts []string, flags ...string) []string {
	args := append([]string{"run", "-q", "--no-record", "-F", config}, flags...)
	return append(args, "-w", strings.Join(hosts, ","), "--", "true")
}

// login to one host, beside ssh.
func (r *rig) login(flags ...string) func(ctx context.Context, s side) ([]reading, error) {
	return func(ctx context.Context, s side) ([]reading, error) {
		l, err := r.open(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := s.measure(ctx, onFleet(l.Config, l.Hosts[:1], flags...)...); err != nil { // the first run keeps what later ones need
			return nil, err
		}
		readings, err := several(func() (lab.Cost, error) { return s.measure(ctx, onFleet(l.Config, l.Hosts[:1], flags...)...) })
		if err != nil {
			return nil, err
		}
		beside, err := several(func() (lab.Cost, error) {
			return lab.Measure(ctx, append(append([]string{"ssh", "-F", l.Config}, flags...), l.Hosts[0], "true"))
		})
		if err != nil {
			return nil, err
		}
		return append(readings, reading{figure: "wall by ssh's", value: readings[0].value / beside[0].value}), nil
	}
}

// first is the login of somebody who has never used sshpace.
func (r *rig) first(ctx context.Context, s side) ([]reading, error) {
	l, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	return several(func() (lab.Cost, error) {
		if err := os.RemoveAll(filepath.Join(s.home, "cache")); err != nil {
			return lab.Cost{}, err
		}
		return s.measure(ctx, onFleet(l.Config, l.Hosts[:1])...)
	})
}

// The paths by whose difference round trips are counted, and how many logins there are over each,
// of which the shortest counts.
const (
	shortTrip = 20 * time.Millisecond
	longTrip  = 260 * time.Millisecond
	tries     = 8
)

// counted are processes and round trips of a login.
func (r *rig) counted(ctx context.Context, s side) ([]reading, error) {
	l, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	started, err := s.processes(ctx, onFleet(l.Config, l.Hosts[:1])...)
	if err != nil {
		return nil, err
	}
	walls := [2]time.Duration{time.Hour, time.Hour}
	for range tries {
		for i, trip := range []time.Duration{shortTrip, longTrip} {
			config, err := r.distant(ctx, trip)
			if err != nil {
				return nil, err
			}
			c, err := s.measure(ctx, onFleet(config, []string{"distant"})...)
			if err != nil {
				return nil, err
			}
			walls[i] = min(walls[i], c.Wall)
		}
	}
	trips := float64(walls[1]-walls[0]) / float64(longTrip-shortTrip)
	return []reading{
		{figure: "processes", value: started, exact: true},
		{figure: "round trips", value: math.Round(trips), exact: true},
	}, nil
}

// processes counts the programs that a second run starts.
func (s side) processes(ctx context.Context, args ...string) (float64, error) {
	if _, err := s.measure(ctx, args...); err != nil {
		return 0, err
	}
	log := filepath.Join(s.home, "strace")
	trace := append([]string{"strace", "-f", "-qq", "-e", "trace=execve", "-o", log, s.binary}, args...)
	if _, err := lab.Measure(ctx, trace, s.env()...); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(log)
	return float64(bytes.Count(text, []byte(") = 0\n")) - 1), err
}

// perHost reads what a run on many hosts cost.
func perHost(c lab.Cost, hosts int) []reading {
	n := float64(hosts)
	return []reading{
		{figure: "client CPU", unit: "ms/host", value: ms(c.CPU) / n},
		{figure: "server CPU", unit: "ms/host", value: ms(c.Server) / n},
		{figure: "wall", unit: "s", value: c.Wall.Seconds()},
		{figure: "memory", unit: "MB", value: float64(c.Peak) / 1e6},
	}
}

func (r *rig) hundred(ctx context.Context, s side) ([]reading, error) {
	l, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	c, err := l.Measure(ctx, append([]string{s.binary}, onFleet(l.Config, l.Hosts)...), s.env()...)
	return perHost(c, len(l.Hosts)), err
}

func (r *rig) thousands(ctx context.Context, s side) ([]reading, error) {
	l, err := r.crowded(ctx)
	if err != nil {
		return nil, err
	}
	c, err := l.Measure(ctx, append([]string{s.binary}, onFleet(l.Config, l.Hosts)...), s.env()...)
	return append(perHost(c, len(l.Hosts)), reading{figure: "lost", unit: "hosts", value: float64(c.Lost), exact: true}), err
}

// moved reads what a copy cost.
func moved(c lab.Cost) []reading {
	return []reading{
		{figure: "client CPU", unit: "ms", value: ms(c.CPU)},
		{figure: "server CPU", unit: "ms", value: ms(c.Server)},
		{figure: "wall", unit: "ms", value: ms(c.Wall)},
		{figure: "memory", unit: "MB", value: float64(c.Peak) / 1e6},
	}
}

func (r *rig) copy(what string) func(ctx context.Context, s side) ([]reading, error) {
	return func(ctx context.Context, s side) ([]reading, error) {
		l, err := r.copying(ctx, what)
		if err != nil {
			return nil, err
		}
		c, err := l.Measure(ctx, []string{s.binary, "copy", "-q", "--no-record", "-F", l.Config, "-w", l.Hosts[0], l.Path("source"), ":got"}, s.env()...)
		if err == nil {
			err = l.Checked(l.Hosts)
		}
		return moved(c), err
	}
}

func (r *rig) fetch(what string) func(ctx context.Context, s side) ([]reading, error) {
	return func(ctx context.Context, s side) ([]reading, error) {
		l, err := r.copying(ctx, what)
		if err != nil {
			return nil, err
		}
		got := l.Path("got")
		c, err := l.Measure(ctx, []string{s.binary, "fetch", "-q", "--no-record", "-F", l.Config, "-w", l.Hosts[0], ":" + l.Path("source"), got}, s.env()...)
		if err == nil {
			err = os.RemoveAll(got)
		}
		return moved(c), err
	}
}

func (r *rig) split(ctx context.Context, s side) ([]reading, error) {
	known, err := r.knownHosts(ctx)
	if err != nil {
		return nil, err
	}
	into := filepath.Join(s.home, "split")
	c, err := s.measure(ctx, "known-hosts", "split", "--no-resolve", "--known-hosts", known, "--dir", into)
	if err == nil {
		err = os.RemoveAll(into)
	}
	return []reading{{figure: "wall", unit: "ms", value: ms(c.Wall)}, {figure: "CPU", unit: "ms", value: ms(c.CPU)}}, err
}

func (r *rig) lookup(ctx context.Context, s side) ([]reading, error) {
	known, err := r.knownHosts(ctx)
	if err != nil {
		return nil, err
	}
	return several(func() (lab.Cost, error) {
		return s.measure(ctx, "known-hosts", "lookup", "--known-hosts", known, "host4999.example")
	})
}

// benchTime is the budget of a bench.
const benchTime = "20s"

func (r *rig) benchLoopback(ctx context.Context, s side) ([]reading, error) { return s.bench(ctx) }

func (r *rig) benchHost(ctx context.Context, s side) ([]reading, error) {
	l, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	return s.bench(ctx, "-F", l.Config, l.Hosts[0])
}

// result is the part of a report that says how precise a run was.
type result struct {
	NoiseFloor map[string]float64 `json:"noise_floor"`
	Answer     struct {
		Gains []struct {
			Throughput *stats.Interval `json:"throughput_ratio"`
			CPU        *stats.Interval `json:"cpu_ratio"`
		} `json:"gains"`
	} `json:"answer"`
}

// readings are the noise floor and the widths of the intervals of what is advised, where a run
// shows them.
func (r result) readings() (list []reading) {
	for _, of := range slices.Sorted(maps.Keys(r.NoiseFloor)) {
		list = append(list, reading{figure: "noise floor, " + strings.TrimSuffix(of, "_pct"), unit: "%", value: r.NoiseFloor[of]})
	}
	for _, gain := range r.Answer.Gains {
		for _, ratio := range []struct {
			of string
			*stats.Interval
		}{{"throughput", gain.Throughput}, {"CPU", gain.CPU}} {
			if ratio.Interval != nil {
				list = append(list, reading{figure: "interval, " + ratio.of, unit: "%", value: 100 * ratio.HalfWidth()})
			}
		}
	}
	return list
}

// bench measures, and reads how precisely.
func (s side) bench(ctx context.Context, args ...string) ([]reading, error) {
	file := filepath.Join(s.home, "bench.jsonl")
	if err := os.RemoveAll(file); err != nil {
		return nil, err
	}
	if _, err := s.measure(ctx, append([]string{"bench", "-q", "--budget", benchTime, "--out", file}, args...)...); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.binary, "report", "--json", file)
	cmd.Env = append(os.Environ(), s.env()...)
	text, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var found result
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	return found.readings(), nil
}

func (r *rig) report(flags ...string) func(ctx context.Context, s side) ([]reading, error) {
	return func(ctx context.Context, s side) ([]reading, error) {
		file := filepath.Join(r.dir, "reported.jsonl")
		if _, err := os.Stat(file); err != nil {
			if _, err := s.measure(ctx, "bench", "-q", "--budget", benchTime, "--out", file); err != nil {
				return nil, err
			}
		}
		c, err := s.measure(ctx, slices.Concat([]string{"report"}, flags, []string{file})...)
		return []reading{{figure: "wall", unit: "ms", value: ms(c.Wall)}, {figure: "CPU", unit: "ms", value: ms(c.CPU)}, {figure: "memory", unit: "MB", value: float64(c.Peak) / 1e6}}, err
	}
}
