package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/drive"
	"sshpace/internal/measure/lab"
	"sshpace/internal/measure/model"
	"sshpace/internal/record"
	"sshpace/internal/sys/bounded"
	"sshpace/internal/sys/proc"
	"sshpace/internal/verdict/rank"
)

// duel is the present and the advised choice, measured in turns.
type duel struct {
	station *station
	suites  [2]alg.Suite // present, advised
	ways    []contest
	failed  map[string]failing
	target  string
}

// contest is one way of moving data, and what the rounds of it showed.
type contest struct {
	name    string
	run     func(ctx context.Context, want alg.Suite) (showing, error)
	speed   [2][]float64 // bytes per second
	speeds  []float64    // log of advised relative to present, round by round
	savings []float64    // log of present relative to advised CPU cost
}

// showing is what one run showed; zero where it could not be read.
type showing struct{ throughput, cost float64 }

// prove measures both choices with real transfers, in turns, and says what the
// advice is worth.
func (a *adviser) prove(ctx, drain context.Context) (err error) {
	ad := a.advice
	out := a.sys.Stdout
	if ad.Present.Bulk() == ad.Advised.Bulk() {
		_, err := fmt.Fprintf(out, "# nothing to prove: %s is negotiated now and is advised\n", ad.Present.Bulk())
		return err
	}
	if why := ad.CannotConnect(); why != "" {
		return withHint(errors.New(why), "there is nothing to compare with: use the advised lines")
	}
	if ad.Present.Cipher == "" {
		return usageError("look at ssh -G", "the present choice is not known: there is nothing to compare with")
	}
	size, err := unit.ParseBytes(a.flags.size)
	if err != nil {
		return err
	}
	p := stationParams{ssh: a.ssh.Path, sshd: a.flags.sshd, engine: record.EngineOpenSSH, data: "zero", connect: time.Duration(a.flags.connect)}
	if !a.local() {
		p.destination = a.destination
	}
	s, err := openStation(ctx, a.sys, p)
	if err != nil {
		return err
	}
	d := &duel{station: s, suites: [2]alg.Suite{ad.Present, ad.Advised}, failed: map[string]failing{}, target: s.target}
	cleanUp, err := d.prepare(ctx, a.sys, time.Duration(a.flags.connect), size, a.ranking.Campaign.Directions)
	defer func() {
		cleanUp()
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	if err != nil {
		return err
	}
	for round := range a.flags.rounds {
		if drain.Err() != nil {
			break
		}
		fmt.Fprintf(a.sys.Stderr, "round %d of %d\n", round+1, a.flags.rounds)
		if err := d.round(ctx, round); err != nil {
			return s.remoteError(err)
		}
	}
	return d.report(out)
}

// prepare lists the ways to move data that this station has. The function that
// it returns removes what copies leave behind; it is never nil.
func (d *duel) prepare(ctx context.Context, sys System, connect time.Duration, size unit.Bytes, directions []record.Direction) (cleanUp func(), err error) {
	for _, direction := range directions {
		d.ways = append(d.ways, contest{name: rawWay + string(direction), run: func(ctx context.Context, want alg.Suite) (showing, error) {
			return d.raw(ctx, want, direction)
		}})
	}
	folder, cleanUp, err := d.remoteFolder(ctx, sys, connect)
	if err != nil || folder == "" {
		return cleanUp, err
	}
	from := filepath.Join(folder.local(d), "from")
	if err := fillFile(from, size); err != nil {
		return cleanUp, err
	}
	for _, name := range []string{"scp", "sftp"} {
		program := filepath.Join(filepath.Dir(d.station.ssh.Path), name)
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		c := &drive.Copier{
			Program: program, SSH: d.station.ssh, Destination: d.station.way, Spawner: d.station.rig.Spawner, Connect: connect,
			From: from, To: string(folder) + "/to", Size: size,
		}
		way := fmt.Sprintf("%s of %s", name, size)
		d.ways = append(d.ways, contest{name: way, run: func(ctx context.Context, want alg.Suite) (showing, error) {
			s, err := c.Copy(ctx, want)
			if err != nil || s.Outcome != record.OK {
				return showing{}, d.fail(way, s, err)
			}
			return showing{throughput: float64(s.Bytes) / s.ElapsedNS.Seconds()}, nil
		}})
	}
	return cleanUp, nil
}

// folder is where copies go, on the server.
type folder string

// local is where the file that is copied stands, on this machine: in memory
// where possible, so that no disk limits the copies.
func (f folder) local(d *duel) string {
	if d.station.server != record.ServerRemote {
		return string(f)
	}
	return d.station.rig.Dir.Path
}

// remoteMark is what mktemp on a host may answer: nothing else is ever removed.
var remoteMark = regexp.MustCompile(`^/tmp/sshpace-copy-[A-Za-z0-9]{10}$`)

// maxAnswer is how much a host may print around the name of a folder, in bytes.
const maxAnswer = 1 << 20

// remoteFolder makes a private folder for the copies.
func (d *duel) remoteFolder(ctx context.Context, sys System, connect time.Duration) (folder, func(), error) {
	none := func() {}
	if d.station.server != record.ServerRemote {
		dir, err := memoryDir(sys)
		if err != nil {
			return "", none, err
		}
		return folder(dir.Path), func() { _ = dir.Close() }, nil
	}
	run := func(command string) ([]byte, error) {
		argv := d.station.ssh.Command(d.station.way, d.suites[1], os.DevNull, connect, command)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*connect)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		proc.Lead(cmd)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, err
		}
		defer func() { proc.EndGroup(cmd.Process.Pid, 0) }()
		text, err := bounded.ReadAll(out, "the host's answer", maxAnswer)
		if err != nil {
			cancel() // it would wait for somebody to read on
		}
		return text, errors.Join(err, cmd.Wait())
	}
	answer, err := run("umask 077; mktemp -d /tmp/sshpace-copy-XXXXXXXXXX")
	lines := regexp.MustCompile(`\S+`).FindAllString(string(answer), -1)
	if err != nil || len(lines) == 0 || !remoteMark.MatchString(lines[len(lines)-1]) {
		return "", none, nil // a host without a shell: raw transfers alone
	}
	path := lines[len(lines)-1]
	return folder(path), func() { _, _ = run("rm -rf -- " + path) }, nil
}

// fillFile writes bytes that no layer can compress.
func fillFile(path string, size unit.Bytes) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	random, err := os.Open("/dev/urandom")
	if err != nil {
		return err
	}
	defer random.Close()
	chunk := make([]byte, 1<<20)
	if _, err := random.Read(chunk); err != nil {
		return err
	}
	for left := size; left > 0; left -= unit.Bytes(len(chunk)) {
		if _, err := f.Write(chunk[:min(left, unit.Bytes(len(chunk)))]); err != nil {
			return withHint(err, "copy less with --size")
		}
	}
	return f.Close()
}

// round runs every way with both choices; which of them is first changes from
// round to round, so that a trend favours neither.
func (d *duel) round(ctx context.Context, number int) error {
	for i := range d.ways {
		w := &d.ways[i]
		if d.failed[w.name].times >= maxFailures {
			continue
		}
		var got [2]showing
		for _, k := range [2]int{number % 2, 1 - number%2} {
			f, err := w.run(ctx, d.suites[k])
			if err != nil || ctx.Err() != nil {
				return err
			}
			got[k] = f
		}
		w.add(got)
	}
	return nil
}

func (w *contest) add(got [2]showing) {
	if got[0].throughput > 0 && got[1].throughput > 0 {
		w.speeds = append(w.speeds, math.Log(got[1].throughput/got[0].throughput))
		for k := range got {
			w.speed[k] = append(w.speed[k], got[k].throughput)
		}
	}
	if got[0].cost > 0 && got[1].cost > 0 {
		w.savings = append(w.savings, math.Log(got[0].cost/got[1].cost))
	}
}

// raw is one trial of the lab, with its check of what was negotiated.
func (d *duel) raw(ctx context.Context, want alg.Suite, direction record.Direction) (showing, error) {
	once := &single{trial: record.Trial{
		Want: want, Workload: record.Transfer, Direction: direction, SegmentNS: 150 * time.Millisecond, Segments: 4,
	}}
	ignore := func(record.Record) error { return nil }
	err := lab.Run(ctx, lab.Params{Target: d.target, FirstID: 1, Drain: ctx}, once, d.station.driver, ignore)
	if err != nil {
		return showing{}, err
	}
	transfer, ok := model.TransferOf(once.trial, once.sample, 0)
	if !ok {
		return showing{}, d.fail(rawWay+string(direction), once.sample, nil)
	}
	return showing{throughput: 1e9 / transfer.Wall.Value(), cost: transfer.Total.Value()}, nil
}

// single is a plan of one trial.
type single struct {
	trial  record.Trial
	sample record.Sample
	given  bool
}

func (s *single) Next(time.Duration) (record.Trial, bool) {
	given := s.given
	s.given = true
	return s.trial, !given
}

func (s *single) Observe(t record.Trial, sample record.Sample) { s.trial, s.sample = t, sample }

// maxFailures of one way: more is no accident.
const maxFailures = 3

// fail counts a transfer that failed. It is an error only where raw transfers
// keep failing: a host without scp or sftp can be proven without them.
func (d *duel) fail(way string, s record.Sample, err error) error {
	if err != nil || s.Outcome == record.Aborted {
		return err
	}
	f := d.failed[way]
	f.times++
	f.why = fmt.Sprintf("%s: %s", s.Outcome, s.Detail)
	d.failed[way] = f
	if isRaw(way) && f.times >= maxFailures {
		return &drive.HostError{Outcome: s.Outcome, Detail: fmt.Sprintf("%s failed %d times: %s", way, f.times, f.why)}
	}
	return nil
}

// rawWay begins the names of transfers without a copying program.
const rawWay = "raw "

func isRaw(way string) bool { return strings.HasPrefix(way, rawWay) }

// failing is how often a way failed, and why the last time.
type failing struct {
	times int
	why   string
}

// report prints the ratios with their intervals (Hodges and Lehmann on the logs
// of the rounds) and a verdict each.
func (d *duel) report(out interface{ Write([]byte) (int, error) }) error {
	fmt.Fprintf(out, "\n# proof on %s: %s (now) and %s (advised) in turns\n", oneLine(d.target), d.suites[0].Bulk(), d.suites[1].Bulk())
	for _, w := range d.ways {
		if len(w.speeds) == 0 {
			fmt.Fprintf(out, "# %-18s no result\n", w.name)
			continue
		}
		q := stats.HodgesLehmann(w.speeds).Exp()
		fmt.Fprintf(out, "# %-18s %6.0f -> %6.0f MB/s  %s  %s\n", w.name, stats.Median(w.speed[0])/1e6, stats.Median(w.speed[1])/1e6, times(q), judged(q, "faster", "slower"))
		if len(w.savings) > 0 {
			q := stats.HodgesLehmann(w.savings).Exp()
			fmt.Fprintf(out, "# %-18s CPU cost of both sides    %s  %s\n", "", times(q), judged(q, "less", "more"))
		}
	}
	for _, w := range d.ways {
		if f := d.failed[w.name]; f.times > 0 {
			fmt.Fprintf(out, "# %s failed %d times: %s\n", w.name, f.times, oneLine(f.why))
		}
	}
	if slices.ContainsFunc(d.ways, func(w contest) bool { return !isRaw(w.name) && len(w.speeds) > 0 }) {
		fmt.Fprintln(out, "# the MB/s of scp and sftp are over the whole program, its login included")
	}
	switch n := len(d.ways[0].speeds); {
	case n == 1:
		fmt.Fprintln(out, "# one round gives no interval")
	case n < stats.MinExact:
		fmt.Fprintf(out, "# %d rounds give no 95 %% interval: what stands in brackets is their range\n", n)
	}
	return nil
}

// indifferent is the difference below which two choices are the same in
// practice.
const indifferent = 0.04

// judged is what an interval says.
func judged(q rank.Quantity, more, less string) string {
	switch {
	case q.N < stats.MinExact:
		return "too few rounds to say"
	case q.Lo > 1:
		return more
	case q.Hi < 1:
		return less
	case q.Lo > 1-indifferent && q.Hi < 1+indifferent:
		return "the same"
	}
	return "no difference shown"
}
