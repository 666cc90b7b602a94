package job_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/hub"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
)

// local runs the lines of hosts by the sh of this machine, after the admission of a login.
type local struct{}

func (local) FDs() int { return 1 }

func (local) Execute(ctx context.Context, h host.Host, c fleet.Command, a fleet.Attempt) fleet.Outcome {
	o := fleet.Outcome{Engine: "native", Exit: -1}
	if a.Admit(ctx, h.Name) != nil {
		o.Stop(context.Cause(ctx))
		return o
	}
	a.Reached(fleet.PhaseExec)
	o.Ran = fleet.RanYes
	cmd := exec.Command("sh", "-c", c.Line)
	cmd.Env = append(os.Environ(), "HOST="+h.Name)
	cmd.Stdout, cmd.Stderr = fleet.Writer{Attempt: a, Stream: fleet.Stdout}, fleet.Writer{Attempt: a, Stream: fleet.Stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.Input != nil {
		cmd.Stdin = c.Input.Reader()
	}
	if err := cmd.Start(); err != nil {
		o.Err = err.Error()
		return o
	}
	defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })()
	_ = cmd.Wait()
	o.Exit = cmd.ProcessState.ExitCode()
	o.Ended(ctx, o.Exit >= 0, "")
	return o
}

// yard is a hub, a signer, and launchers of pool a.
type yard struct {
	*office
	dir, key string
	spec     job.Spec
	lease    time.Duration
	limits   job.Limits
	forged   string // the key that signs instead
	expires  time.Duration
}

func newYard(t *testing.T) *yard {
	t.Parallel() // most of it is waiting
	y := &yard{office: &office{t: t}, dir: t.TempDir(), lease: 30 * time.Second, expires: time.Hour, spec: job.Spec{ID: jobID}}
	y.key = filepath.Join(y.dir, "alice")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", y.key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err := os.ReadFile(y.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(y.dir, "allowed_signers"), append([]byte("alice@example.com "), public...), 0o600); err != nil {
		t.Fatal(err)
	}
	return y
}

func (y *yard) open() {
	var err error
	if y.hub, err = (hub.NATS{}).Serve(y.t.Context(), job.Serving{Dir: filepath.Join(y.dir, "hub"), Limits: y.limits}); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(y.hub.Close)
}

// publish publishes a job for hosts with a line, which notes in the file ran that it has begun.
func (y *yard) publish(p fanout.Pace, line string, names ...string) {
	if y.hub == nil {
		y.open()
	}
	hosts := hostsOf(y.t, names)
	y.spec.Line = "echo $HOST >> " + filepath.Join(y.dir, "ran") + "; " + line
	plan := job.Plan{
		Spec: y.spec, Hosts: hosts, Sizes: p.Sizes(len(hosts)), Expires: y.expires, Pool: func(host.Host) string { return "a" },
		Sign: func(ctx context.Context, manifest []byte) ([]byte, error) {
			key := y.key
			if y.forged != "" {
				key = y.forged
			}
			return job.Sign(ctx, key, os.Getenv, manifest, io.Discard)
		},
	}
	var err error
	if y.client, err = job.Publish(y.t.Context(), y.bus(job.RoleClient), plan, y.people()); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(y.client.Close)
}

// launcher returns a launcher, which says what happens.
func (y *yard) launcher(bus job.Bus, name string, say func(string)) job.Launcher {
	return job.Launcher{
		Bus: bus, Pool: "a", Name: name, Lease: y.lease, Policy: job.Policy{AllowedSigners: filepath.Join(y.dir, "allowed_signers")},
		State: filepath.Join(y.dir, "state", name), Room: fanout.NewRoom(0, 1), Say: say,
		Open: func(context.Context, *job.Spec) (fleet.Executor, func(), error) { return local{}, func() {}, nil },
	}
}

// here runs a launcher in this process. stop ends it as the first signal does, and waits.
func (y *yard) here(name string) (stop func()) {
	drain, cancel := context.WithCancel(y.t.Context())
	ended := make(chan struct{})
	say := y.people().Notice
	bus := y.bus(job.LauncherRole("a"))
	go func() {
		defer close(ended)
		y.check(y.launcher(bus, name, say).Run(drain, context.WithoutCancel(y.t.Context())))
	}()
	stop = func() { cancel(); <-ended }
	y.t.Cleanup(stop)
	return stop
}

// The environment of a launcher in a process of its own.
const (
	yardOf  = "SSHPACE_TEST_YARD"
	nameOf  = "SSHPACE_TEST_LAUNCHER"
	leaseOf = "SSHPACE_TEST_LEASE"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(yardOf)
	if dir == "" {
		os.Exit(m.Run())
	}
	y := &yard{dir: dir}
	y.lease, _ = time.ParseDuration(os.Getenv(leaseOf))
	bus, err := hub.NATS{}.Dial(context.Background(), job.Address{Role: job.LauncherRole("a"), Dir: filepath.Join(dir, "hub")})
	if err == nil {
		drain, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		fmt.Println("ready")
		err = y.launcher(bus, os.Getenv(nameOf), func(text string) { fmt.Println(text) }).Run(drain, context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process starts a launcher in a process of its own.
func (y *yard) process(name string) *exec.Cmd {
	y.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), yardOf+"="+y.dir, nameOf+"="+name, leaseOf+"="+y.lease.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
		y.t.Fatalf("%q, %v", line, err)
	}
	go func() {
		for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
			y.people().Notice(name + ": " + strings.TrimSpace(line))
		}
	}()
	return cmd
}

// ran returns how often the command of each host has begun.
func (y *yard) ran() map[string]int {
	text, _ := os.ReadFile(filepath.Join(y.dir, "ran"))
	n := map[string]int{}
	for _, name := range strings.Fields(string(text)) {
		n[name]++
	}
	return n
}

// until waits for a condition.
func (y *yard) until(what string, is func() bool) {
	y.t.Helper()
	for begun := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			y.t.Fatalf("%s: not within a minute; %s", what, y.notices())
		}
	}
}

// once checks that no command has begun twice.
func (y *yard) once() {
	y.t.Helper()
	for name, n := range y.ran() {
		if n > 1 {
			y.t.Errorf("%s: %d times", name, n)
		}
	}
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("a%d", i+1))
	}
	return list
}

// Launchers share the batches of a job, and each command runs once.
func TestLaunchers(t *testing.T) {
	y := newYard(t)
	y.spec.Input = []byte("for all\n")
	y.publish(fanout.Pace{}, "cat; echo $HOST; test $HOST != a7", names(120)...)
	y.here("east")
	y.here("west")
	s, so := y.run(t.Context(), fanout.Pace{})
	if so.OK != 119 || so.Failed != 1 || len(y.ran()) != 120 {
		t.Errorf("%+v, ran %d: %s", so, len(y.ran()), y.notices())
	}
	y.once()
	by := map[string]int{}
	for _, r := range s.results {
		by[r.Launcher]++
	}
	if len(by) != 2 || s.text["a9"] != "for all\na9\n" || s.results["a7"].Exit != 1 || s.results["a7"].Spent[fleet.PhaseExec] == 0 {
		t.Errorf("%v %q %+v", by, s.text["a9"], s.results["a7"])
	}
	if text := y.notices(); !strings.Contains(text, "job "+jobID+" of alice@example.com: ") || !strings.Contains(text, "has ended: 8 hosts, ") {
		t.Error(text)
	}
}

// A launcher that is killed has others finish its hosts: those that it had not started. The others
// may have run, and do not run again.
func TestLauncherIsKilled(t *testing.T) {
	for _, test := range []struct {
		name       string
		successor  string
		idempotent bool
	}{{"by another", "west", false}, {"by itself", "east", false}, {"again", "west", true}} {
		t.Run(test.name, func(t *testing.T) {
			y := newYard(t)
			y.lease, y.spec.Fanout, y.spec.Idempotent = 900*time.Millisecond, 2, test.idempotent
			y.publish(fanout.Pace{}, "test -e "+filepath.Join(y.dir, "go")+" || sleep 4; echo out", names(5)...)
			east := y.process("east")
			go func() {
				y.until("two hosts run", func() bool { return len(y.ran()) == 2 })
				_ = east.Process.Kill()
				_, _ = east.Process.Wait()
				_ = os.WriteFile(filepath.Join(y.dir, "go"), nil, 0o600)
				y.process(test.successor)
			}()
			s, so := y.run(t.Context(), fanout.Pace{})
			if test.idempotent {
				if so.OK != 5 || len(y.ran()) != 5 {
					t.Errorf("%+v, %v: %s", so, y.ran(), y.notices())
				}
				return
			}
			if y.once(); so.OK != 3 || so.Failed != 2 || len(y.ran()) != 5 {
				t.Errorf("%+v, %v: %s", so, y.ran(), y.notices())
			}
			for name, r := range s.results {
				if r.Status() == fleet.Failed && (r.Ran != fleet.RanUnknown || !strings.Contains(r.Err, "launcher east was lost")) {
					t.Errorf("%s: %+v", name, r)
				}
			}
		})
	}
}

// A launcher that stood still for longer than its lease starts nothing more of a batch that another
// one has taken over meanwhile.
func TestTakeover(t *testing.T) {
	y := newYard(t)
	y.lease, y.spec.Fanout = 900*time.Millisecond, 2
	y.publish(fanout.Pace{}, "test -e "+filepath.Join(y.dir, "go")+" || sleep 3", names(5)...)
	east := y.process("east")
	go func() {
		y.until("two hosts run", func() bool { return len(y.ran()) == 2 })
		_ = east.Process.Signal(syscall.SIGSTOP)
		_ = os.WriteFile(filepath.Join(y.dir, "go"), nil, 0o600)
		y.process("west")
	}()
	s, so := y.run(t.Context(), fanout.Pace{})
	_ = east.Process.Signal(syscall.SIGCONT)
	for name, r := range s.results {
		if by := r.Launcher; by != "west" && (by != "east" || r.Ran != fleet.RanUnknown) {
			t.Errorf("%s is a result of %q: %+v", name, by, r)
		}
	}
	y.until("east hears of it", func() bool { return strings.Contains(y.notices(), "east: job "+jobID+": batch 0") })
	if y.once(); so.OK != 3 || so.Failed != 2 || len(y.ran()) != 5 {
		t.Errorf("%+v, %v, %+v: %s", so, y.ran(), s.results, y.notices())
	}
}

// A launcher that stood still while nobody else was there goes on.
func TestPause(t *testing.T) {
	y := newYard(t)
	y.lease, y.spec.Fanout = 600*time.Millisecond, 2
	y.publish(fanout.Pace{}, "sleep 0.5", names(5)...)
	east := y.process("east")
	go func() {
		y.until("two hosts run", func() bool { return len(y.ran()) == 2 })
		_ = east.Process.Signal(syscall.SIGSTOP)
		time.Sleep(2 * time.Second)
		_ = east.Process.Signal(syscall.SIGCONT)
	}()
	if _, so := y.run(t.Context(), fanout.Pace{}); so.OK != 5 {
		t.Errorf("%+v, %v: %s", so, y.ran(), y.notices())
	}
	y.once()
}

// The first signal lets what runs go on, and leaves the rest to others at once.
func TestLauncherLeaves(t *testing.T) {
	y := newYard(t)
	y.spec.Fanout = 1
	y.publish(fanout.Pace{}, "test $HOST != a1 || sleep 3; echo out", names(5)...)
	east := y.process("east")
	go func() {
		y.until("a host runs", func() bool { return len(y.ran()) == 1 })
		y.here("west")
		_ = east.Process.Signal(syscall.SIGTERM)
	}()
	s, so := y.run(t.Context(), fanout.Pace{})
	if y.once(); so.OK != 5 || s.text["a1"] != "out\n" || s.order[len(s.order)-1] != "a1" || s.results["a1"].Launcher != "east" || s.results["a5"].Launcher != "west" {
		t.Errorf("%+v, %v, %v: %s", so, s.text, s.order, y.notices())
	}
	if err := east.Wait(); err != nil {
		t.Error(err)
	}
}

// Nothing of a job runs whose signer is not known here, and each host says so once.
func TestRefused(t *testing.T) {
	y := newYard(t)
	y.forged = filepath.Join(y.dir, "mallory")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", y.forged).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	y.publish(fanout.Pace{}, "true", names(12)...)
	y.here("east")
	s, so := y.run(t.Context(), fanout.Pace{})
	if r := s.results["a3"]; so.Unreachable != 12 || len(y.ran()) != 0 || r.Class != fleet.Local || r.Ran != fleet.RanNo || !strings.Contains(r.Err, "launcher east refuses the job: nobody") {
		t.Errorf("%+v, %v, %+v", so, y.ran(), r)
	}
	if text := y.notices(); strings.Count(text, "is refused") != 1 {
		t.Error(text)
	}
}

// A hub that has lost a journal, or says so, has nothing run twice by a launcher, also after that
// was started anew.
func TestReplayed(t *testing.T) {
	y := newYard(t)
	y.publish(fanout.Pace{}, "echo out", names(5)...)
	stop := y.here("east")
	if _, so := y.run(t.Context(), fanout.Pace{}); so.OK != 5 {
		t.Fatalf("%+v: %s", so, y.notices())
	}
	bus := y.bus(job.RoleClient)
	var parts []job.Entry
	for e, err := range bus.Follow(t.Context(), "job.*."+job.Token(jobID)+".*", job.FollowOptions{Until: true}) {
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, e)
	}
	for round := range 2 {
		if round == 1 {
			stop()
			y.here("east")
		}
		if err := bus.Remove(t.Context(), jobID); err != nil {
			t.Fatal(err)
		}
		for _, e := range parts {
			y.check(bus.Put(t.Context(), job.Entry{Subject: e.Subject, Header: map[string]string{"Parts": e.Header["Parts"]}, Data: e.Data}))
		}
		y.attach()
		s, so := y.run(t.Context(), fanout.Pace{})
		if y.once(); so.Failed != 5 || s.results["a1"].Ran != fleet.RanUnknown || !strings.Contains(s.results["a1"].Err, "the hub has lost") {
			t.Errorf("%+v, %v, %+v: %s", so, y.ran(), s.results["a1"], y.notices())
		}
	}
}

// Who stops a job has no host start any more, in batches that wait, too; and running commands end
// if they are to.
func TestStopped(t *testing.T) {
	for _, end := range []bool{false, true} {
		t.Run(fmt.Sprint(end), func(t *testing.T) {
			y := newYard(t)
			y.spec.Fanout = 2
			y.publish(fanout.Pace{}, "sleep 1; echo out", names(40)...)
			y.here("east")
			drain, cancel := context.WithCancelCause(t.Context())
			go func() {
				y.until("two hosts run", func() bool { return len(y.ran()) >= 2 })
				if end {
					cancel(errors.New("enough"))
					return
				}
				data, _ := json.Marshal(job.Stop{By: "bob"})
				y.check(y.bus(job.RoleClient).Put(t.Context(), job.Entry{Subject: job.Subject("stop", "a", jobID, 0), Data: data}))
			}()
			s, so := y.run(drain, fanout.Pace{})
			if so.NotStarted < 30 || len(y.ran()) > 8 || end != (so.OK == 0) || end != (so.Failed > 0) {
				t.Errorf("end %v: %+v, ran %v: %s", end, so, y.ran(), y.notices())
			}
			if r := s.results["a40"]; !end && (r.Err != "stopped by bob" || r.Class != fleet.Cancelled) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// No host starts after the job has expired.
func TestExpires(t *testing.T) {
	y := newYard(t)
	y.expires, y.spec.Fanout = 4*time.Second, 1
	y.publish(fanout.Pace{}, "sleep 1.2", names(5)...)
	y.here("east")
	s, so := y.run(t.Context(), fanout.Pace{})
	if so.OK == 0 || so.NotStarted == 0 || so.OK+so.NotStarted != 5 {
		t.Errorf("%+v: %s", so, y.notices())
	}
	if r := s.results["a5"]; !strings.Contains(r.Err, "expired") {
		t.Errorf("%+v", r)
	}
}

// A hub that is full starts nothing, and loses nothing: it goes on when there is room.
func TestFullHub(t *testing.T) {
	y := newYard(t)
	y.limits = job.Limits{Bytes: 4 << 20}
	y.publish(fanout.Pace{}, "echo out", names(5)...)
	bus, seq := y.bus(job.LauncherRole("a")), uint64(0)
	var err error
	for i := 0; err == nil; i++ {
		seq, err = bus.Append(t.Context(), job.Entry{Subject: "event.a.junk.0", Data: make([]byte, 900<<10)}, seq, fmt.Sprint(i))
	}
	if !errors.Is(err, job.ErrFull) {
		t.Fatal(err)
	}
	for ; err == nil || errors.Is(err, job.ErrFull) && seq > 0; seq = 0 {
		_, err = bus.Append(t.Context(), job.Entry{Subject: "event.a.junk.1", Data: make([]byte, 400<<10)}, 0, "last")
	}
	for i, size := 0, 256<<10; size > 10; i++ {
		if _, err := bus.Append(t.Context(), job.Entry{Subject: fmt.Sprint("event.a.junk.", i+2), Data: make([]byte, size)}, 0, fmt.Sprint("small", i, size)); err != nil {
			size /= 2
		}
	}
	y.here("east")
	go func() {
		y.until("it is full", func() bool { return strings.Contains(y.notices(), "the hub keeps no entries, so no host starts") })
		time.Sleep(200 * time.Millisecond)
		if len(y.ran()) != 0 {
			t.Errorf("ran %v", y.ran())
		}
		y.check(y.bus(job.RoleClient).Remove(t.Context(), "junk"))
	}()
	s, so := y.run(t.Context(), fanout.Pace{})
	if y.once(); so.OK != 5 || s.text["a5"] != "out\n" {
		t.Errorf("%+v, %q: %s", so, s.text, y.notices())
	}
	y.until("it is said", func() bool { return strings.Contains(y.notices(), "keeps entries again") })
}

// counted sums up what hosts write.
type counted struct {
	fleet.Nothing
	bytes int
	sum   hash.Hash
}

func (c *counted) Output(e fleet.Event) error {
	c.bytes += len(e.Data)
	_, err := c.sum.Write(e.Data)
	return err
}

// All output comes, in order, however much it is.
func TestMuchOutput(t *testing.T) {
	const lines, width = 50_000, 1000
	y := newYard(t)
	y.publish(fanout.Pace{}, fmt.Sprintf("test $HOST = a2 || exec seq -f '%%0%d.f' %d", width, lines), names(2)...)
	y.here("east")
	c, want := &counted{sum: sha256.New()}, sha256.New()
	so, err := fanout.Run(t.Context(), fanout.Params{RetryFor: -1, Resources: &fanout.Resources{}}, y.client.Hosts, fleet.Command{}, y.client, y.client.Sink(c, fleet.Nothing{}))
	for i := range lines {
		fmt.Fprintf(want, "%0*d\n", width, i+1)
	}
	if err != nil || so.OK != 2 || c.bytes != lines*(width+1) || !bytes.Equal(c.sum.Sum(nil), want.Sum(nil)) {
		t.Errorf("%v, %+v, %d bytes: %s", err, so, c.bytes, y.notices())
	}
}

// Names that are none are no hosts, whoever has signed them.
func TestHostileHosts(t *testing.T) {
	for _, set := range []string{"*", "a?", "", "-oProxyCommand=x", "@all", "a\x1b[2J", "a[1-9999999]"} {
		s := job.Spec{Batches: []string{set}}
		if hosts, err := s.Hosts(0); err == nil && len(hosts) > 0 {
			t.Errorf("%q: %v", set, hosts)
		}
	}
	y := newYard(t)
	y.open()
	spec := y.spec
	spec.Schema, spec.Pool, spec.Batches, spec.Line = job.Schema, "a", []string{"a1,*"}, "true"
	m, data, err := job.NewManifest(map[string]*job.Spec{"a": &spec}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	manifest, _ := json.Marshal(m)
	signature, err := job.Sign(t.Context(), y.key, os.Getenv, manifest, io.Discard)
	y.check(err)
	text, _ := json.Marshal(job.Signed{Manifest: manifest, Signature: signature, Spec: data["a"]})
	bus := y.bus(job.RoleClient)
	y.check(bus.Put(t.Context(), job.Entry{Subject: job.Subject("job", "a", jobID, 0), Header: map[string]string{"Parts": "1"}, Data: text}))
	y.check(bus.Put(t.Context(), job.Entry{Subject: job.Subject("batch", "a", jobID, 0)}))
	y.check(bus.Put(t.Context(), job.Entry{Subject: job.Subject("batch", "a", jobID, 7)}))
	y.check(bus.Put(t.Context(), job.Entry{Subject: job.Subject("batch", "a", "unknown", 0)}))
	y.here("east")
	y.until("it is said", func() bool { return strings.Count(y.notices(), "cannot be carried out") == 3 })
}

// A name of a pool is that of one launcher.
func TestOneName(t *testing.T) {
	y := newYard(t)
	y.open()
	y.here("east")
	y.until("it lives", func() bool { _, err := y.bus(job.RoleClient).Last(t.Context(), "alive.a.east"); return err == nil })
	err := y.launcher(y.bus(job.LauncherRole("a")), "east", func(string) {}).Run(t.Context(), t.Context())
	if err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Error(err)
	}
	bus := y.bus(job.LauncherRole("a"))
	data, _ := json.Marshal(job.Alive{Instance: "west/1", Host: "elsewhere"})
	y.check(bus.Put(t.Context(), job.Entry{Subject: "alive.a.west", Data: data}))
	err = y.launcher(bus, "west", func(string) {}).Run(t.Context(), t.Context())
	if err == nil || !strings.Contains(err.Error(), "has a launcher west on elsewhere") {
		t.Error(err)
	}
	y.lease = 300 * time.Millisecond
	ended := make(chan error)
	for _, user := range []string{"", "-of-another-user"} {
		twin := y.launcher(bus, "south", func(string) {})
		twin.State += user
		go func() { ended <- twin.Run(t.Context(), t.Context()) }()
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "has another launcher south") {
		t.Error(err)
	}
}

// Of launchers that believe that they have the same batch, one starts each host.
func TestTwoWriters(t *testing.T) {
	y := newYard(t)
	y.open()
	for _, idempotent := range []bool{false, true} {
		subject := job.Subject("event", "a", fmt.Sprint("job", idempotent), 0)
		begin := func(instance string) job.Writer {
			w, err := job.NewWriter(t.Context(), y.bus(job.LauncherRole("a")), subject, instance, idempotent)
			y.check(err)
			return w
		}
		east, west := begin("east/1"), begin("west/1")
		start := func(w job.Writer, host int, want bool) {
			t.Helper()
			if err := w.Start(t.Context(), host); (err == nil) != want {
				t.Errorf("idempotent %v, host %d: %v", idempotent, host, err)
			}
		}
		start(east, 0, true)
		y.check(east.End(0))
		start(east, 1, true)
		start(west, 0, false) // it has ended
		start(west, 1, idempotent)
		start(west, 2, true)
		start(east, 3, false) // it is west's now
		start(east, 1, true)  // which was started there
		y.check(east.End(1))
		start(west, 4, true)
		if before := west.Previous(); before != "east/1" { // which had written nothing when west began
			t.Errorf("idempotent %v: west had it from %q", idempotent, before)
		}
		north := begin("north/1")
		start(north, 2, idempotent)
		start(north, 5, true)
		start(west, 6, false)
		if s, _ := north.Now(); s.Owner != "north/1" || s.Started.Count() != 5 || s.Ended.Count() != 2 {
			t.Errorf("idempotent %v: %+v", idempotent, s)
		}
	}
}
