//go:build linux

// Command keep measures what connections that `sshpace keep` holds cost and save, beside those of
// ssh's own masters and beside none, side by side, in turns.
//
//	go run ./crosscheck/keep -sshpace ./sshpace [-n 1400] [-idle 2m] [-options 'Ciphers NAME']
//
// Run it as a user whose shell starts at once. Ratios are medians of the rounds' ratios.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sshpace/crosscheck/lab"
)

func main() {
	log.SetFlags(0)
	lab.Reap()
	b := &bench{ctx: context.Background()}
	flag.StringVar(&b.sshpace, "sshpace", "sshpace", "the sshpace binary")
	flag.StringVar(&b.options, "options", "", "a line of ssh_config for all")
	flag.StringVar(&b.only, "only", "", "only moves whose name holds this")
	flag.IntVar(&b.n, "n", 1400, "hosts, at least 220")
	flag.IntVar(&b.rounds, "rounds", 9, "rounds")
	flag.DurationVar(&b.idle, "idle", 2*time.Minute, "how long connections are idle")
	flag.Parse()
	if err := b.run(); err != nil {
		log.Fatal(err)
	}
}

// bench is a lab, and the ways to its hosts.
type bench struct {
	ctx                    context.Context
	sshpace, options, only string
	n, rounds              int
	idle                   time.Duration
	*lab.Lab
}

// ways are those over keep, over ssh's own master, and those that log in.
var ways = []string{"keep", "master", "cold"}

func (b *bench) run() (err error) {
	if b.Lab, err = lab.Start(b.ctx, lab.Params{Hosts: b.n}); err != nil {
		return err
	}
	defer b.Stop()
	for _, way := range ways {
		config := fmt.Sprintf("%s\nServerAliveInterval 60\nControlPath %s\nInclude %s\n", b.options, b.Path(way+"-%h"), b.Config)
		if err := os.WriteFile(b.Path(way), []byte(config), 0o600); err != nil {
			return err
		}
	}
	keep := func(args ...string) error {
		out, err := exec.Command(b.sshpace, append([]string{"keep", "-F", b.Path("keep")}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("keep: %w: %.500s", err, out)
		}
		return err
	}
	if err := keep("-w", strings.Join(b.Hosts, ",")); err != nil {
		return err
	}
	defer keep("--stop")
	for _, measure := range []func() error{b.idleCost, b.runs, b.moves} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// master is the process that has a host's socket.
func (b *bench) master(way, h string) (pid int) {
	said, _ := exec.Command("ssh", "-F", b.Path(way), "-O", "check", h).CombinedOutput()
	_, text, _ := strings.Cut(string(said), "pid=")
	fmt.Sscan(text, &pid)
	return pid
}

// idleCost shows what connections cost that nobody uses, and leaves one master of ssh's open.
func (b *bench) idleCost() error {
	pid := b.master("keep", b.Hosts[0])
	time.Sleep(10 * time.Second) // what the logins needed is given back
	before := cpu(pid)
	time.Sleep(b.idle)
	share := (cpu(pid) - before).Seconds() / b.idle.Seconds()
	const masters = 50
	total := 0.0
	for i, h := range b.Hosts[:masters] {
		if err := exec.Command("ssh", "-F", b.Path("master"), "-MNf", h).Run(); err != nil {
			return fmt.Errorf("a master of ssh: %w", err)
		}
		total += memory(b.master("master", h), "smaps_rollup", "Pss")
		if i > 0 {
			defer exec.Command("ssh", "-F", b.Path("master"), "-O", "exit", h).Run()
		}
	}
	fmt.Printf("%d connections: keep %.1f MB (RSS), %.2f %% of a core over %v; ssh's masters %.0f MB (PSS, %d of them measured)\n",
		b.n, memory(pid, "status", "VmRSS"), 100*share, b.idle, total*float64(b.n)/masters, masters)
	return nil
}

// memory is a figure of a file of a process in MB.
func memory(pid int, file, name string) (mb float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	fmt.Sscan(rest, &mb)
	return mb * 1024 / 1e6
}

// cpu is what all threads of a process have used.
func cpu(pid int) (total time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		ns := int64(0)
		fmt.Sscan(string(text), &ns)
		total += time.Duration(ns)
	}
	return total
}

// runs shows what a host more costs the client of a command: the difference of 220 and 20 hosts.
func (b *bench) runs() error {
	each := map[string][]float64{}
	for range b.rounds {
		for _, way := range []string{"keep", "cold"} {
			var ms [2]float64
			for i, n := range []int{20, 220} {
				c, err := lab.Measure(b.ctx, []string{b.sshpace, "run", "-q", "--no-record", "-F", b.Path(way), "-w", strings.Join(b.Hosts[:n], ","), "--", "true"})
				if err != nil {
					return err
				}
				ms[i] = c.CPU.Seconds() * 1e3
			}
			each[way] = append(each[way], (ms[1]-ms[0])/200)
		}
	}
	fmt.Printf("run, CPU of the client: keep %.3f ms a host, cold %.3f ms\n", median(each["keep"]), median(each["cold"]))
	return nil
}

// moves compares what programs do over the ways.
func (b *bench) moves() error {
	file := b.Path("file")
	if err := exec.Command("sh", "-c", `head -c 200000000 /dev/urandom >"$1"`, "sh", file).Run(); err != nil {
		return err
	}
	for _, m := range []struct{ name, script string }{
		{"ssh host true", "$ssh $h true"},
		{"scp to", "scp -q -F $F $f $h:$f.2"}, {"scp from", "scp -q -F $F $h:$f $f.2"},
		{"rsync to", `rm -f $f.2; rsync -W -e "$ssh" $f $h:$f.2`}, {"rsync from", `rm -f $f.2; rsync -W -e "$ssh" $h:$f $f.2`},
		{"pipe to", "cat $f | $ssh $h 'cat >/dev/null'"}, {"pipe from", "$ssh $h cat $f | cat >/dev/null"},
		{"proxy to", "cat $f | $ssh $proxy $h 'cat >/dev/null'"}, {"proxy from", "$ssh $proxy $h cat $f | cat >/dev/null"},
	} {
		if !strings.Contains(m.name, b.only) {
			continue
		}
		took := map[string][]float64{}
		for range b.rounds {
			for _, way := range ways {
				proxy := map[bool]string{true: "-O proxy"}[way != "cold"]
				c, err := lab.Measure(b.ctx, []string{"sh", "-e", "-c", m.script}, "F="+b.Path(way), "ssh=ssh -F "+b.Path(way), "h="+b.Hosts[0], "f="+file, "proxy="+proxy)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, way, err)
				}
				took[way] = append(took[way], c.Wall.Seconds())
			}
		}
		fmt.Printf("%-14s keep %.4f s, %.2f times as long as over the master, %.2f as cold\n", m.name, median(took["keep"]), ratio(took["keep"], took["master"]), ratio(took["keep"], took["cold"]))
	}
	return nil
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// ratio is the median of the rounds' ratios.
func ratio(a, b []float64) float64 {
	var all []float64
	for i := range a {
		all = append(all, a[i]/b[i])
	}
	return median(all)
}
