//go:build linux

// Command fanout compares what fan-out tools cost: client CPU per host, the
// servers' CPU and wall time for `true`, or with -copy for a copy of files, on many
// loopback addresses of one private sshd, the same key exchange for all, side by
// side in one run. crosscheck/fanout.sh installs the other tools and calls it.
//
//	go run ./crosscheck/fanout -sshpace ./sshpace -venv DIR -n 150 -rounds 5
//
// With -startups 10:30:100 the sshd has that MaxStartups, as behind one bastion, and notes each
// command that it runs: hosts without one are lost.
//
// CPU is user and system time of the tool and of all processes that it has
// waited for (getrusage(2)). What sshd and all that it started used is a column of
// its own: tools cannot choose that part, and on loopback it takes its time from the same
// cores. Rounds are interleaved, so that a busy moment of the machine hits all tools
// alike; ratios are medians of the rounds' ratios.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	fleetlab "sshpace/crosscheck/lab"
)

func main() {
	fleetlab.Reap()
	n := flag.Int("n", 150, "hosts, at most 60000")
	only := flag.String("only", "", "only tools whose name contains one of these words, separated by commas")
	knownBytes := flag.Int("known-bytes", 0, "fill known_hosts with other hosts up to this size")
	rounds := flag.Int("rounds", 5, "rounds of all tools")
	fanout := flag.Int("f", 64, "hosts at once, for every tool")
	sshpace := flag.String("sshpace", "sshpace", "the sshpace binary")
	before := flag.String("before", "", "older ones, separated by commas, measured beside it under their own names")
	copied := flag.String("copy", "", "copy files instead: a size such as 100M, or 1000x10K; -dir should be on a tmpfs")
	dir := flag.String("dir", "", "where the servers' directories are made")
	startups := flag.String("startups", "", "MaxStartups of the sshd, such as OpenSSH's own 10:30:100, and count the hosts that each tool loses")
	venv := flag.String("venv", "", "Python environment with parallel-ssh and asyncssh")
	flag.Parse()
	p := params{n: *n, rounds: *rounds, fanout: *fanout, knownBytes: *knownBytes, copied: *copied, startups: *startups, dir: *dir, sshpace: *sshpace, before: *before, venv: *venv, only: *only}
	if err := run(context.Background(), p); err != nil {
		fmt.Fprintf(os.Stderr, "fanout: %v\n", err)
		os.Exit(1)
	}
}

// lab is the private sshd, with the ways of all tools to reach it.
type lab struct{ *fleetlab.Lab }

// params are the flags.
type params struct {
	n, rounds, fanout, knownBytes int
	copied, dir, venv, only       string
	startups                      string
	sshpace, before               string
}

func run(ctx context.Context, p params) error {
	if p.n < 1 || p.n > 60000 || p.rounds < 1 {
		return fmt.Errorf("%d hosts and %d rounds; want 1 to 60000 and at least 1", p.n, p.rounds)
	}
	started, err := fleetlab.Start(ctx, fleetlab.Params{Hosts: p.n, KnownBytes: p.knownBytes, Copied: p.copied, Startups: p.startups, Dir: p.dir})
	if err != nil {
		return err
	}
	defer started.Stop()
	lab := lab{started}
	list, what := lab.tools(p.sshpace, p.venv, p.fanout), "true"
	if p.copied != "" {
		list, what = lab.copyTools(p.sshpace, p.fanout), "copy of "+p.copied
	}
	if p.before != "" {
		list = append(list, lab.older(p)...)
	}
	tools := available(chosen(list, p.only))
	for i := range tools {
		tools[i].checks, err = tools[i].checksHostKeys(ctx, lab)
		if err != nil {
			return fmt.Errorf("%s: %w", tools[i].name, err)
		}
	}
	warm := 1 // rounds that are not counted; a copy is long enough to need none
	if p.copied != "" {
		warm = 0
	}
	for round := range p.rounds + warm {
		for i := range tools {
			t := &tools[i]
			c, err := lab.Measure(ctx, t.command(lab.Config, lab.Known, lab.Hosts))
			if err == nil {
				err = lab.Checked(lab.Hosts)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			if round >= warm {
				t.costs = append(t.costs, c)
			}
		}
	}
	return table(tools, what, p)
}

// older are the ways of other sshpaces.
func (l lab) older(p params) (all []tool) {
	for _, binary := range strings.Split(p.before, ",") {
		list := l.tools(binary, p.venv, p.fanout)
		if p.copied != "" {
			list = l.copyTools(binary, p.fanout)
		}
		for _, t := range list {
			if rest, ours := strings.CutPrefix(t.name, "sshpace"); ours {
				t.name = binary + rest
				all = append(all, t)
			}
		}
	}
	return all
}

// tool is one way to run a command on many hosts.
type tool struct {
	name string
	// command makes the argument list; it must exit with 0 only when all hosts have succeeded.
	command func(config, known string, hosts []string) []string
	needs   []string // files or programs

	checks bool
	costs  []fleetlab.Cost
}

// chosen are the tools that only names, whole or by a part of the name that no tool has as a whole,
// ourselves always first.
func chosen(tools []tool, only string) []tool {
	isWhole := func(word string) bool {
		return slices.ContainsFunc(tools, func(t tool) bool { return t.name == word })
	}
	words := strings.Split(only, ",")
	whole := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !isWhole(w) })
	parts := slices.DeleteFunc(words, isWhole)
	return slices.DeleteFunc(tools, func(t tool) bool {
		return !slices.Contains(whole, t.name) && !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(t.name, part) })
	})
}

func available(tools []tool) []tool {
	return slices.DeleteFunc(tools, func(t tool) bool {
		for _, need := range t.needs {
			if _, err := exec.LookPath(need); err != nil {
				fmt.Fprintf(os.Stderr, "fanout: %s is left out: %v\n", t.name, err)
				return true
			}
		}
		return false
	})
}

// checksHostKeys tries the tool on a host whose key is not the known one.
func (t *tool) checksHostKeys(ctx context.Context, l lab) (bool, error) {
	if _, err := fleetlab.Measure(ctx, t.command(l.Config, l.Known, l.Hosts[:1])); err != nil {
		return false, err
	}
	if err := l.Checked(l.Hosts[:1]); err != nil {
		return false, err
	}
	_, err := fleetlab.Measure(ctx, t.command(l.WrongConfig, l.WrongKnown, l.Hosts[:1]))
	return err != nil, os.RemoveAll(l.Path("hosts")) // what was copied there nevertheless
}

func median[T cmp.Ordered](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

// each lists one part of every round's cost.
func each(costs []fleetlab.Cost, of func(fleetlab.Cost) time.Duration) []time.Duration {
	var all []time.Duration
	for _, c := range costs {
		all = append(all, of(c))
	}
	return all
}

func lostOf(costs []fleetlab.Cost) (all []int) {
	for _, c := range costs {
		all = append(all, c.Lost)
	}
	return all
}

// ratio is the median of how much less we cost than a tool, round by round: 1 = the same, 0.5 =
// half.
func ratio(ours, theirs []fleetlab.Cost, of func(fleetlab.Cost) time.Duration) float64 {
	var all []float64
	for i := range ours {
		all = append(all, float64(of(ours[i]))/float64(of(theirs[i])))
	}
	return median(all)
}

func cpuOf(c fleetlab.Cost) time.Duration    { return c.CPU }
func serverOf(c fleetlab.Cost) time.Duration { return c.Server }
func bothOf(c fleetlab.Cost) time.Duration   { return c.CPU + c.Server }
func wallOf(c fleetlab.Cost) time.Duration   { return c.Wall }

// table prints the medians; what the first tool costs is divided by what the others do.
func table(tools []tool, what string, p params) error {
	if len(tools) == 0 {
		return fmt.Errorf("no tool is left to be measured")
	}
	fmt.Printf("%s, %d hosts, %d at once, curve25519-sha256, medians of %d interleaved rounds, CPU in ms per host\n", what, p.n, p.fanout, p.rounds)
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "tool\thost keys checked\tclient\t(lowest\thighest)\tservers\twall s\tlost\t%s / this: client\tboth\twall\t\n", tools[0].name)
	base := tools[0].costs
	for _, t := range tools {
		ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(p.n) }
		cpus := each(t.costs, cpuOf)
		fmt.Fprintf(w, "%s\t%s\t%.2f\t(%.2f\t%.2f)\t%.1f\t%.2f\t%d\t%.3f\t%.2f\t%.2f\t\n", t.name, map[bool]string{true: "yes", false: "no"}[t.checks],
			ms(median(cpus)), ms(slices.Min(cpus)), ms(slices.Max(cpus)), ms(median(each(t.costs, serverOf))), median(each(t.costs, wallOf)).Seconds(), median(lostOf(t.costs)),
			ratio(base, t.costs, cpuOf), ratio(base, t.costs, bothOf), ratio(base, t.costs, wallOf))
	}
	return w.Flush()
}

// tools are all that are compared, ourselves first.
func (l lab) tools(sshpace, venv string, fanout int) []tool {
	many := fmt.Sprint(fanout)
	python := filepath.Join(venv, "bin", "python")
	list := func(hosts []string) string { return strings.Join(hosts, ",") }
	forked := func(hosts []string) string { return strings.Join(hosts, " ") }
	return []tool{
		{name: "sshpace", needs: []string{sshpace}, command: func(config, _ string, hosts []string) []string {
			return []string{sshpace, "run", "-q", "--no-record", "-F", config, "-f", many, "-w", list(hosts), "--", "true"}
		}},
		{name: "sshpace -f 0", needs: []string{sshpace}, command: func(config, _ string, hosts []string) []string {
			return []string{sshpace, "run", "-q", "--no-record", "-F", config, "-w", list(hosts), "--", "true"}
		}},
		{name: "sshpace --engine openssh", needs: []string{sshpace, "ssh"}, command: func(config, _ string, hosts []string) []string {
			return []string{sshpace, "run", "-q", "--no-record", "--engine", "openssh", "-F", config, "-f", many, "-w", list(hosts), "--", "true"}
		}},
		{name: "pssh", needs: []string{"parallel-ssh"}, command: func(config, _ string, hosts []string) []string {
			return []string{"parallel-ssh", "-p", many, "-x", "-F " + config, "-H", forked(hosts), "true"}
		}},
		{name: "pdsh", needs: []string{"pdsh"}, command: func(config, _ string, hosts []string) []string {
			return []string{"env", "PDSH_SSH_ARGS_APPEND=-F " + config, "pdsh", "-S", "-R", "ssh", "-f", many, "-w", list(hosts), "true"}
		}},
		{name: "clush", needs: []string{"clush"}, command: func(config, _ string, hosts []string) []string {
			return []string{"clush", "-S", "-f", many, "-o", "-F " + config, "-w", list(hosts), "true"}
		}},
		{name: "ansible -m raw", needs: []string{"ansible"}, command: func(config, _ string, hosts []string) []string {
			return l.ansible(config, many, hosts, "raw", "true")
		}},
		{name: "xargs+ssh", needs: []string{"xargs"}, command: func(config, _ string, hosts []string) []string {
			return []string{"sh", "-c", `printf "%s\n" $1 | xargs -P "$2" -I{} ssh -n -o BatchMode=yes -F "$3" {} true`, "sh", forked(hosts), many, config}
		}},
		{name: "parallel-ssh (library)", needs: []string{python}, command: func(_, known string, hosts []string) []string {
			return []string{python, "-c", parallelSSH, forked(hosts), many, fmt.Sprint(l.Port), l.UserKey, l.User}
		}},
		{name: "asyncssh (library)", needs: []string{python}, command: func(_, known string, hosts []string) []string {
			return []string{python, "-c", asyncSSH, forked(hosts), many, fmt.Sprint(l.Port), l.UserKey, l.User, known}
		}},
	}
}

// ansible runs one module on the hosts. Its own ControlPersist is left out, and so is its
// compression: connections would be warm from the second round on, the other tools' are not.
func (l lab) ansible(config, many string, hosts []string, module, args string) []string {
	return []string{"env", "ANSIBLE_SSH_ARGS=-F " + config, "ANSIBLE_LOCAL_TEMP=" + l.Path("ansible"), "ANSIBLE_CONFIG=" + l.Path("ansible.cfg"),
		"ansible", "-i", strings.Join(hosts, ",") + ",", "-f", many, "-m", module, "-a", args, "all"}
}

// parallelSSH is the shortest program with the library of that name. It has no way to check host
// keys.
const parallelSSH = `
import sys
from pssh.clients import ParallelSSHClient
hosts, many, port, key, user = sys.argv[1:6]
client = ParallelSSHClient(hosts.split(), user=user, port=int(port), pkey=key, pool_size=int(many), allow_agent=False)
output = client.run_command("true")
client.join(output)
sys.exit(max(o.exit_code for o in output))
`

const asyncSSH = `
import asyncio, sys, asyncssh
hosts, many, port, key, user, known = sys.argv[1:7]
async def one(limit, keys, host):
    async with limit:
        async with asyncssh.connect(host, int(port), username=user, client_keys=keys, known_hosts=known, config=[], agent_path=None, kex_algs=["curve25519-sha256"]) as c:
            return (await c.run("true")).exit_status
async def main():
    limit = asyncio.Semaphore(int(many))
    keys = [asyncssh.read_private_key(key)]
    return max(await asyncio.gather(*(one(limit, keys, h) for h in hosts.split())))
sys.exit(asyncio.run(main()))
`
