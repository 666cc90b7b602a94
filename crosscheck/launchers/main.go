//go:build linux

// Command launchers measures jobs over a hub. The hosts are addresses of loopback behind one cheap
// SSH server; a command is run on all of them by `run` alone, and by 1, 2 and 4 launchers.
//
//	go run ./crosscheck/launchers [-program FILE] [-n 20000] [-json]
//
// CPU is that of the clocks of the processes. An event takes from the answer of a host to the line
// of the client: while all is as busy as it can be, and with hosts that answer at moments of their
// own. It ends with 3 if a hub costs more than 0.15 ms of CPU a host in all its parts together, or
// if two launchers are less than 1.8 times as much as one: of two, each has to do half of the work.
//
// Its tests do their worst to small jobs: parts of them are killed, held, cut off and left without
// a disk, and the report of the client is compared with all that the hosts saw.
//
//	go test -timeout 0 ./crosscheck/launchers -run Faults -args -trials 500 [-seed 1]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	log.SetFlags(0)
	var b bench
	flag.StringVar(&b.program, "program", "", "sshpace-hub (default: it is built)")
	flag.IntVar(&b.n, "n", 20000, "hosts")
	flag.BoolVar(&b.json, "json", false, "the numbers as JSON")
	flag.Parse()
	err := b.run()
	if errors.Is(err, errMissed) {
		log.Print(err)
		os.Exit(3)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// build returns the path of sshpace-hub, which is built in a directory if it is not given.
func build(given, dir string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	program := filepath.Join(dir, "sshpace-hub")
	out, err := exec.Command("go", "build", "-o", program, "sshpace/hub").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w: %s", err, out)
	}
	return program, err
}

// errMissed says that something is not as it should be, which was said.
var errMissed = errors.New("not all is as it should be")

// The numbers that are wanted.
const (
	mostOverhead = 0.15 // ms of CPU a host
	leastGain    = 1.8  // of two launchers
)

// bench measures.
type bench struct {
	program, dir string
	n            int
	json         bool
}

// cost has the figures of one job. CPU is in ms a host.
type cost struct {
	Launchers int       `json:"launchers"` // 0: `run` alone
	Hosts     int       `json:"hosts"`
	Client    float64   `json:"client_ms"`
	Hub       float64   `json:"hub_ms"`
	Each      []float64 `json:"launchers_ms"` // of all hosts, by launcher
	Wall      float64   `json:"wall_s"`
	P50       float64   `json:"event_p50_ms"` // from a host's answer to the line of the client
	P99       float64   `json:"event_p99_ms"`
	ClientMB  float64   `json:"client_mb"` // the most memory
	HubMB     float64   `json:"hub_mb"`
	WorkMB    float64   `json:"launcher_mb"`
	Disk      float64   `json:"disk_bytes"` // a host, at the hub
}

func (c *cost) work() (total float64) {
	for _, ms := range c.Each {
		total += ms
	}
	return total
}

func (c *cost) cpu() float64 { return c.Client + c.Hub + c.work() }

func (b *bench) run() (err error) {
	if b.dir, err = os.MkdirTemp("", "launchers-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.program, err = build(b.program, b.dir); err != nil {
		return err
	}
	var all []cost
	for _, launchers := range []int{0, 1, 2, 4} {
		c, err := b.measure(b.n, launchers, func(*rand.Rand) answer { return answer{} })
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	// Hosts that answer at moments of their own leave the machine time: how long an event takes.
	for _, launchers := range []int{0, 2} {
		c, err := b.measure(min(b.n, 2000), launchers, func(rng *rand.Rand) answer {
			return answer{after: time.Duration(rng.Int64N(int64(15 * time.Second)))}
		})
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	overhead, gain := all[1].cpu()-all[0].cpu(), 2*all[1].work()/all[2].work()
	if err := b.show(all, overhead, gain); err != nil {
		return err
	}
	if overhead > mostOverhead || gain < leastGain {
		return errMissed
	}
	return nil
}

// measure runs a command on n hosts by some launchers.
func (b *bench) measure(n, launchers int, draw func(*rand.Rand) answer) (c cost, err error) {
	f, err := serve(1, draw)
	if err != nil {
		return c, err
	}
	j, err := newJob(b.program, b.dir, n, f)
	if err != nil {
		return c, err
	}
	defer j.close()
	if err := j.start(launchers); err != nil {
		return c, err
	}
	for running := true; running; {
		select {
		case <-j.client.ended:
			running = false
		case <-time.After(50 * time.Millisecond):
			c.ClientMB = max(c.ClientMB, j.client.peak())
		}
	}
	c.Launchers, c.Hosts, c.Wall = launchers, n, time.Since(j.client.began).Seconds()
	seen, said := f.seen(), j.client.told
	for _, address := range j.hosts {
		if h := said.hosts[address]; len(seen[address].starts) != 1 || h == nil || len(h.results) != 1 || h.results[0].Status != "ok" {
			return c, fmt.Errorf("%s saw %+v, and the client reports %+v; %.2000s", address, seen[address], h, j.words(j.client))
		}
	}
	ms := func(m *member) float64 { return m.cpu().Seconds() * 1000 / float64(n) }
	c.Client = ms(j.client)
	for _, l := range j.launchers {
		c.Each, c.WorkMB = append(c.Each, ms(l)), max(c.WorkMB, l.peak())
	}
	if launchers > 0 {
		c.Hub, c.HubMB, c.Disk = ms(j.hub), j.hub.peak(), float64(used(j.path("hub")))/float64(n)
	}
	var late []time.Duration
	for address, h := range seen {
		late = append(late, said.hosts[address].arrived.Sub(h.ended))
	}
	slices.Sort(late)
	c.P50, c.P99 = late[len(late)/2].Seconds()*1e3, late[len(late)*99/100].Seconds()*1e3
	return c, nil
}

// show prints the numbers.
func (b *bench) show(all []cost, overhead, gain float64) error {
	if b.json {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"hosts": b.n, "costs": all, "overhead_ms": overhead, "gain": gain})
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "launchers\tclient\thub\tlaunchers\tall\thosts/s\tevent p50\tp99\tclient MB\thub MB\tlauncher MB\tdisk\t")
	for _, c := range all {
		fmt.Fprintf(w, "%d\t%.3f\t%.3f\t%.3f %.3f\t%.3f\t%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", c.Launchers, c.Client, c.Hub, c.work(), c.Each, c.cpu(), float64(c.Hosts)/c.Wall, c.P50, c.P99, c.ClientMB, c.HubMB, c.WorkMB, c.Disk)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("a hub costs %.3f ms of CPU a host (wanted: at most %.2f); two launchers are %.2f of one (wanted: at least %.1f)\n", overhead, mostOverhead, gain, leastGain)
	return nil
}

// cpu is what all threads of a process have used, also those that have ended.
func (p *process) cpu() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.Process.Pid)<<3|2, &t); err != nil { // CPUCLOCK_SCHED of the process
		return p.ProcessState.UserTime() + p.ProcessState.SystemTime()
	}
	return time.Duration(t.Nano())
}

// used is how many bytes the files below a directory take.
func used(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// peak is the most memory that a process has had, in MB.
func (p *process) peak() (mb float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	_, rest, _ := strings.Cut(string(text), "\nVmHWM:")
	fmt.Sscan(rest, &mb)
	return mb * 1024 / 1e6
}
