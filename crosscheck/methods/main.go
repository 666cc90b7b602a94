//go:build linux

// Command methods checks `sshpace transfer` against loops that share no code with
// it: a pipe, a forwarded port and scp to an sshd of its own, timed from the start
// of a program to its end, for one byte and for many. Both take turns run by run: the one,
// the other, the other, the one, so that they see the same machine and what changes evenly
// is the same for both; with -core N on one core only, where nothing depends on how the
// scheduler spreads ssh and sshd over several. On two cores runs of 0.3 and of 1.5 s differ
// by a fifth alike, so that many short ones say more than few long ones.
//
//	go run ./crosscheck/methods [-blocks 1000] [-size 192] [-core 0] [-for 2m] [-mode scp]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/crosscheck/daemon"
	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/flow"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

const cipher = "aes128-gcm@openssh.com"

func main() {
	log.SetFlags(0)
	pairs := flag.Int("blocks", 1000, "of turns of each mode at most")
	size := flag.Int("size", 192, "MiB of a long run")
	core := flag.Int("core", -1, "run everything on this core")
	limit := flag.Duration("for", 2*time.Minute, "begin no pair after that")
	only := flag.String("mode", "", "pipe, forward -L, forward -R or scp; all of them by default")
	own := flag.Bool("swallow", false, "be the sink of a pipe")
	if len(os.Args) > 3 && os.Args[1] == "--helper" {
		help(os.Args[2], os.Args[3:])
		return
	}
	flag.Parse()
	if *own {
		swallow()
		return
	}
	if *core >= 0 {
		stay(*core)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	if err := compare(ctx, record.Mode(*only), *pairs, *size<<20); err != nil {
		log.Fatal(err)
	}
}

// help runs a program that sshpace starts as itself.
func help(program string, args []string) {
	var err error
	switch program {
	case "flow":
		err = flow.Main(args, os.Stdin, os.Stdout)
	case "keep":
		err = safedir.Keep(args[0], os.Stdin)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// stay starts this program anew on one core: its threads and what it starts stay there.
func stay(core int) {
	var one unix.CPUSet
	if unix.SchedGetaffinity(0, &one) == nil && one.Count() == 1 {
		return
	}
	self, err := os.Executable()
	if err == nil {
		err = unix.Exec("/usr/bin/taskset", append([]string{"taskset", "-c", strconv.Itoa(core), self}, os.Args[1:]...), os.Environ())
	}
	log.Fatal(err)
}

// nap is how long bytes gather before they are taken out of a pipe: a reader that wakes up for each
// write costs more than a fast cipher.
const nap = time.Millisecond

// swallow takes what comes through a pipe without copying it.
func swallow() {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		log.Fatal(err)
	}
	_, _ = unix.FcntlInt(0, unix.F_SETPIPE_SZ, 1<<20)
	for {
		if n, err := unix.Splice(0, nil, int(null.Fd()), nil, 1<<20, 0); err != nil {
			log.Fatal(err)
		} else if n == 0 {
			return
		}
		time.Sleep(nap)
	}
}

// lab is a directory in memory with keys, two files, and an sshd.
type lab struct {
	*daemon.Sshd
	dir, me, self string
	size          int
}

func newLab(size int) (*lab, error) {
	dir, err := os.MkdirTemp("/dev/shm", "crosscheck-")
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, self: self, me: me.Username, size: size}
	random := make([]byte, 1<<20)
	urandom, err := os.Open("/dev/urandom")
	if err == nil {
		_, err = io.ReadFull(urandom, random)
	}
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"short": random[:1], "long": bytes.Repeat(random, size>>20)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	l.Sshd, err = daemon.Start([]string{"/usr/sbin/sshd"}, dir, "127.0.0.1", "SetEnv HOME="+dir, "Subsystem sftp internal-sftp", "MaxStartups 100")
	return l, err
}

func (l *lab) close() {
	l.Sshd.Close()
	_ = os.RemoveAll(l.dir)
}

// options lead ssh and scp to the lab; scp spells the port its own way.
func (l *lab) options(port string) []string {
	return []string{
		"-F", "/dev/null", port, l.Port, "-i", l.Key, "-o", "User=" + l.me, "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "Ciphers=" + cipher, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
	}
}

// run times one program that reads a file.
func run(stdin string, argv ...string) (float64, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := os.Open(stdin)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	cmd.Stdin = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the scheduler shares by sessions (sched(7): autogroup), and sshpace's have one each
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", argv[0], err, out)
	}
	return time.Since(start).Seconds(), nil
}

func (l *lab) pipe(file string) (float64, error) {
	return run(file, append(append([]string{"ssh"}, l.options("-p")...), "127.0.0.1", "exec "+l.self+" -swallow")...)
}

func (l *lab) scp(file string) (float64, error) {
	defer os.Remove(l.dir + "/to")
	return run("/dev/null", append(append([]string{"scp", "-q"}, l.options("-P")...), file, "127.0.0.1:"+l.dir+"/to")...)
}

// forwardLocal times from the start of ssh until all of the file has come out of the forwarded
// port's other end.
func (l *lab) forwardLocal(file string) (float64, error) {
	return l.tunnel("-L", file, func(near, far net.Conn) (in, out net.Conn) { return near, far })
}

// forwardRemote has the port at the server, and sends from this end, too.
func (l *lab) forwardRemote(file string) (float64, error) {
	return l.tunnel("-R", file, func(near, far net.Conn) (in, out net.Conn) { return far, near })
}

// tunnel forwards a port, connects to it, and moves a file between that connection and the one that
// comes out at its other end; ends says which is sent into.
func (l *lab) tunnel(flag, file string, ends func(dialed, accepted net.Conn) (in, out net.Conn)) (float64, error) {
	behind, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer behind.Close()
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address := free.Addr().String()
	free.Close()
	about, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("ssh", append(l.options("-p"), "-N", flag, address+":"+behind.Addr().String(), "127.0.0.1")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as ssh -f has it
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var dialed net.Conn
	for dialed, err = net.Dial("tcp4", address); err != nil; dialed, err = net.Dial("tcp4", address) {
		if time.Since(start) > 20*time.Second {
			return 0, err
		}
		time.Sleep(time.Millisecond)
	}
	defer dialed.Close()
	accepted, err := behind.Accept()
	if err != nil {
		return 0, err
	}
	defer accepted.Close()
	in, out := ends(dialed, accepted)
	if err := between(in, out, file, about.Size()); err != nil {
		return 0, err
	}
	return time.Since(start).Seconds(), nil
}

// between has the programs of a user at both ends of a tunnel: one reads a file and writes it, the
// other one reads it and says how much came.
func between(in, out net.Conn, file string, size int64) error {
	into, err := in.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	defer into.Close()
	from, err := out.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	defer from.Close()
	source := exec.Command("dd", "bs=128k", "if="+file)
	source.Stdout = into
	sink := exec.Command("dd", "bs=128k", "of=/dev/null")
	var said bytes.Buffer
	sink.Stdin, sink.Stderr = from, &said
	if err := source.Start(); err != nil {
		return err
	}
	go func() {
		_ = source.Wait()
		_ = in.(*net.TCPConn).CloseWrite()
	}()
	if err := sink.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, &said)
	}
	if !strings.Contains(said.String(), fmt.Sprintf("%d byte", size)) {
		return fmt.Errorf("of %d bytes came out: %s", size, &said)
	}
	return nil
}

// mode is sshpace's and our loop.
type mode struct {
	mode record.Mode
	loop func(l *lab, file string) (float64, error)
}

var modes = []mode{{record.ModePipe, (*lab).pipe}, {record.ModeForwardL, (*lab).forwardLocal}, {record.ModeForwardR, (*lab).forwardRemote}, {record.ModeSCP, (*lab).scp}}

// compare measures both in turns, in one mode or, where only is "", in all.
func compare(ctx context.Context, only record.Mode, pairs, size int) error {
	l, err := newLab(size)
	if err != nil {
		return err
	}
	defer l.close()
	bed, done, err := sshpace(ctx)
	if err != nil {
		return err
	}
	defer done()
	suite := alg.NewSuite(cipher, "", "")
	all := map[record.Mode]*series{}
	for range pairs {
		for _, m := range modes {
			if ctx.Err() != nil || only != "" && only != m.mode {
				continue
			}
			if all[m.mode] == nil {
				all[m.mode] = &series{size: size}
			}
			method := bed.Subjects([]record.Mode{m.mode}, transfer.Options{Suite: suite, Direction: record.Upload})[0]
			if err := all[m.mode].block(m, l, method); err != nil {
				return fmt.Errorf("%s: %w", m.mode, err)
			}
		}
	}
	fmt.Printf("%-12s %10s %10s %12s %18s %6s %8s\n", "MB/s", "loop", "sshpace", "median", "95 % interval", "blocks", "spread")
	for _, m := range modes {
		if s := all[m.mode]; s != nil {
			fmt.Printf("%-12s %s\n", m.mode, s)
		}
	}
	return nil
}

// byHand and bySSHPace are the two that take turns.
const byHand, bySSHPace = 0, 1

// block is the seconds of two long runs of each, right after each other, in one of the orders 0110
// and 1001, so that what changes evenly is the same for both.
type block [2][2]float64

// series holds the times of all blocks of a mode; the first of all, which finds programs and files
// cold, is not in it.
type series struct {
	size   int
	warm   bool
	start  [2][]float64 // seconds of one byte
	blocks []block
}

func (s *series) block(m mode, l *lab, method *transfer.Subject) error {
	run := func(who int, all bool) (float64, error) {
		if who == byHand {
			return m.loop(l, filepath.Join(l.dir, map[bool]string{false: "short", true: "long"}[all]))
		}
		bytes := int64(1)
		if all {
			bytes = int64(s.size)
		}
		r, err := method.Run(context.Background(), bytes)
		return r.Wall.Seconds(), err
	}
	one := rand.IntN(2)
	var took block
	var begun [2]float64
	for i, who := range []int{one, 1 - one, one, 1 - one, 1 - one, one} {
		seconds, err := run(who, i > 1)
		if err != nil {
			return err
		}
		if i < 2 {
			begun[who] = seconds
		} else {
			took[who][i/4] = seconds
		}
	}
	if !s.warm {
		s.warm = true
		return nil
	}
	s.start[0], s.start[1], s.blocks = append(s.start[0], begun[0]), append(s.start[1], begun[1]), append(s.blocks, took)
	return nil
}

// rates are the MB/s of all long runs of one of both, in turn, without what one byte takes at the
// median: a start is known better from all of them than from one.
func (s *series) rates(who int) (rates []float64) {
	start := stats.Median(s.start[who])
	for _, b := range s.blocks {
		for _, seconds := range b[who] {
			rates = append(rates, float64(s.size)/1e6/math.Max(seconds-start, seconds/10))
		}
	}
	return rates
}

// ratios are, for each block, the logarithm of sshpace's rate over the loop's.
func (s *series) ratios() (logs []float64) {
	loop, own := s.rates(byHand), s.rates(bySSHPace)
	for i := 0; i < len(loop); i += 2 {
		logs = append(logs, math.Log(own[i]*own[i+1]/(loop[i]*loop[i+1]))/2)
	}
	return logs
}

// draws is of how many other series of blocks the interval is made.
const draws = 1000

// doubt is the 95 % interval of the middle ratio: what it is of blocks drawn from these again and
// again, with the runs of one byte that belong to them.
func (s *series) doubt() (lo, hi float64) {
	random := rand.New(rand.NewPCG(1, 1))
	var middles []float64
	for range draws {
		drawn := series{size: s.size}
		for range s.blocks {
			i := random.IntN(len(s.blocks))
			drawn.blocks = append(drawn.blocks, s.blocks[i])
			for who := range s.start {
				drawn.start[who] = append(drawn.start[who], s.start[who][i])
			}
		}
		middles = append(middles, stats.HodgesLehmann(drawn.ratios()).Value)
	}
	slices.Sort(middles)
	return middles[draws/40], middles[draws-1-draws/40]
}

func (s *series) String() string {
	if len(s.blocks) == 0 {
		return "no block was whole in that time"
	}
	logs := s.ratios()
	middle := stats.HodgesLehmann(logs).Value // as good as a mean, and a few wild runs do not move it
	lo, hi := s.doubt()
	percent := func(log float64) float64 { return 100 * (math.Exp(log) - 1) }
	return fmt.Sprintf("%10.0f %10.0f %+11.1f%% %+8.1f to %+.1f%% %6d %7.0f%%",
		stats.Median(s.rates(byHand)), stats.Median(s.rates(bySSHPace)), percent(middle), percent(lo), percent(hi), len(logs), percent(stats.Scale(logs, stats.Median(logs))))
}

// sshpace is a private pair of ssh and sshd as sshpace transfer has it.
func sshpace(ctx context.Context) (bed *transfer.Ground, done func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	helper := func(name string) []string { return []string{self, "--helper", name} }
	dir, err := safedir.NewWorkdir(safedir.WorkdirParams{Getenv: os.Getenv, Keeper: helper("keep"), InMemory: true})
	if err != nil {
		return nil, nil, err
	}
	tb, err := testbed.Open(ctx, testbed.Params{Data: "random", Connect: 20 * time.Second, Dir: dir, Helper: helper, Everything: true})
	if err != nil {
		return nil, nil, err
	}
	bed, cleanUp, err := transfer.Open(ctx, tb, dir.Path, "", true)
	return bed, func() { cleanUp(); tb.Close(); dir.Close() }, err
}
