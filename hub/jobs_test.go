package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/cli"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/proc"
)

const asProgram = "SSHPACE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch as := os.Getenv(asProgram); {
	case as == "sshpace" && filepath.Base(os.Args[0]) != "sshpace-hub":
		os.Exit(cli.Main(context.Background(), cli.System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Signals: proc.CatchSignals}, os.Args))
	case as != "":
		main()
	}
	os.Exit(m.Run())
}

// yard is a hub with launchers of two pools, in processes of their own, and an sshd that is all
// hosts: 127.0.1.* of pool east, 127.0.2.* of pool west.
type yard struct {
	t    *testing.T
	home string
}

func newYard(t *testing.T, pools ...string) *yard {
	s := sshtest.StartSshd(t)
	y := &yard{t, t.TempDir()}
	public, err := exec.Command("ssh-keygen", "-y", "-f", s.Key).Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ssh_config": fmt.Sprintf("Host *\n Port %d\n User %s\n IdentityFile %s\n IdentityAgent none\n UserKnownHostsFile %s/known_hosts\n GlobalKnownHostsFile none\n",
			s.Port, s.User, s.Key, y.home),
		"known_hosts":                     fmt.Sprintf("[127.0.*]:%d %s", s.Port, sshtest.AuthorizedLine(s.HostKey)),
		".config/sshpace/allowed_signers": "me@example.com " + string(public),
		".ssh/id_ed25519":                 read(t, s.Key),
		"pools":                           "east: 127.0.1.[1-99]\nwest: 127.0.2.[1-99]\n",
	} {
		path := filepath.Join(y.home, name)
		if err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	y.start("hub").until("the hub is ready")
	for _, pool := range pools {
		y.work(pool)
	}
	return y
}

// work starts a launcher.
func (y *yard) work(pool string) *process {
	return y.start("work", "--hub", "unix", "--pool", pool, "--name", "of-"+pool, "-F", filepath.Join(y.home, "ssh_config"))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// process is a command that runs; its files have what it has said.
type process struct {
	*exec.Cmd
	t        *testing.T
	out, err string
}

// start starts a command line of sshpace-hub, which ends with the test.
func (y *yard) start(args ...string) *process { return y.startAs("sshpace-hub", args...) }

// startAs starts a command line of one of the two programs.
func (y *yard) startAs(program string, args ...string) *process {
	y.t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...), t: y.t}
	p.Env = append(os.Environ(), asProgram+"="+program, "HOME="+y.home, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "SSH_AUTH_SOCK=", "PATH="+y.home+"/bin:"+os.Getenv("PATH"))
	p.Dir = y.home
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	for _, to := range []struct {
		path *string
		w    interface{ Write([]byte) (int, error) }
	}{{&p.out, nil}, {&p.err, nil}} {
		f, err := os.CreateTemp(y.t.TempDir(), "")
		if err != nil {
			y.t.Fatal(err)
		}
		defer f.Close()
		if *to.path = f.Name(); p.Stdout == nil {
			p.Stdout = f
		} else {
			p.Stderr = f
		}
	}
	if err := p.Start(); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return p
}

// until waits until the command has said something that matches.
func (p *process) until(pattern string) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if regexp.MustCompile(pattern).MatchString(read(p.t, p.out) + read(p.t, p.err)) {
			return
		}
	}
	p.t.Fatalf("%s has not said %q: %s%s", p.Args[1:], pattern, read(p.t, p.out), read(p.t, p.err))
}

// ended returns the exit code and all that was said.
func (p *process) ended() (exit int, out, err string) {
	_ = p.Wait()
	return p.ProcessState.ExitCode(), read(p.t, p.out), read(p.t, p.err)
}

// wants runs a command line, whose exit code and output, standard error behind standard output,
// have to match.
func (y *yard) wants(exit int, pattern string, args ...string) string {
	y.t.Helper()
	got, out, err := y.start(args...).ended()
	if got != exit || !regexp.MustCompile(pattern).MatchString(out+err) {
		y.t.Errorf("%s: exit %d, want %d and %q\n%s%s", args, got, exit, pattern, out, err)
	}
	return out
}

// run returns the words of a run over the hub.
func run(args ...string) []string {
	return append([]string{"run", "--hub", "unix", "--pools", "pools"}, args...)
}

// ran returns on which hosts the command that mark makes has run, and how often in all.
func (y *yard) ran() (hosts map[string]int, all int) {
	hosts = map[string]int{}
	text, _ := os.ReadFile(filepath.Join(y.home, "ran"))
	for line := range strings.Lines(string(text)) {
		hosts[strings.TrimSpace(line)]++
		all++
	}
	return hosts, all
}

// mark is a command that notes on which host it runs.
func (y *yard) mark(then string) string {
	return fmt.Sprintf("set -- $SSH_CONNECTION; echo $3 >>%s/ran; %s", y.home, then)
}

// wait is a command that ends when there is a file go.
func (y *yard) wait() string { return "until [ -e " + y.home + "/go ]; do sleep 0.1; done" }

// The pace of a run holds over all launchers together, and so do views and exit codes.
func TestRunOverHub(t *testing.T) {
	t.Parallel()
	y := newYard(t, "east", "west")
	hosts := "127.0.1.[1-3],127.0.2.[1-3]"
	y.wants(0, `^-+\n127\.0\.\[1-2\]\.\[1-3\] \(6\)\n-+\n\| hello\n`, run("-w", hosts, "-b", "--", "echo hello")...)
	y.wants(0, `127.0.2.1: exit by native .*, launcher of-west\n`, run("-w", hosts, "-v", "--", "true")...)
	y.wants(0, `"launcher":"of-east"`, run("-w", hosts, "--json", "--", "true")...)

	// a canary of one launcher stops both
	y.wants(1, `batch 1 of 2: the first host failed; 5 of 6 hosts were not started`, run("-w", "127.0.2.1,"+hosts, "--canary", "1", "--", y.mark("exit 3"))...)
	if hosts, all := y.ran(); all != 1 || hosts["127.0.2.1"] != 1 {
		t.Errorf("ran on %v", hosts)
	}
	os.Remove(filepath.Join(y.home, "ran"))
	// failures of both count together
	y.wants(1, `2 of 6 hosts had failed, more than --max-fail 1; 4 of 6`, run("-w", "127.0.1.1,127.0.2.1,"+hosts, "--batch", "2", "--max-fail", "1", "--", y.mark("exit 3"))...)
	if hosts, all := y.ran(); all != 2 || len(hosts) != 2 {
		t.Errorf("ran on %v", hosts)
	}
	// a pause is between batches
	began := time.Now()
	y.wants(0, `batch 2 of 2.*so far 1 host: 1 ok(.|\n)*6 hosts: 6 ok`, run("-w", hosts, "--canary", "1", "--pause", "1s", "--", "true")...)
	if time.Since(began) < time.Second {
		t.Error("no pause")
	}
	// nobody is asked here, and one failure ends all that runs
	y.wants(1, `nobody confirmed: .*; 5 of 6 hosts were not started`, run("-w", hosts, "--canary", "1", "--then-confirm", "--", "true")...)
	y.wants(0, `6 hosts: 6 ok`, run("-w", hosts, "--canary", "1", "--then-confirm", "-y", "--", "true")...)
	began = time.Now()
	y.wants(1, `ended because other hosts had failed`, run("-w", hosts, "--fail-fast", "--", `case $SSH_CONNECTION in *127.0.2.1\ *) sleep 1; exit 3;; esac; sleep 60`)...)
	if time.Since(began) > 30*time.Second {
		t.Error("what ran was not ended")
	}
	// what travels
	y.wants(4, `nobody@127.0.1.1:7 =: unreachable: `, run("-w", "127.0.1.1", "-l", "nobody", "-p", "7", "--", "true")...)
	y.wants(0, `127.0.1.1 -> 127.0.1.1 x\n127.0.2.1 -> 127.0.2.1 x`, run("-w", "127.0.[1-2].1", "--sort", "host", "--per-host", "--", "echo %h x")...)
	y.wants(1, `127.0.1.1 =: .*took longer than --timeout`, run("-w", "127.0.1.1", "--timeout", "0.2", "--", "sleep 9")...)
	y.wants(0, `1 host: 1 ok`, run("-w", "127.0.1.1", "--", "true")...)
	y.wants(2, `127.0.3.1 is in no pool of pools\n`, run("-w", "127.0.3.1", "--", "true")...)
	y.wants(0, `again on 1 host of run .*, with its --hub=unix --pools=`, "run", "--rerun", "all", "-w", "127.0.2.3", "--timeout", "9")
	y.wants(4, `launcher of-east refuses the job: nobody whom .* has signed it`, append(run("--sign-key", y.stranger()), "-w", "127.0.1.1", "--", y.mark(""))...)
	y.wants(0, `(?m)^2\S+-\w{6} +done +6/6 +0 `, "jobs", "--hub", "unix")
}

// stranger makes a key that no launcher knows.
func (y *yard) stranger() string {
	path := filepath.Join(y.t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput(); err != nil {
		y.t.Fatalf("%v: %s", err, out)
	}
	return path
}

// A client that is killed loses nothing: jobs continues the run, and completes its record.
func TestKilledClient(t *testing.T) {
	t.Parallel()
	y := newYard(t, "east", "west")
	client := y.start(run("-w", "127.0.1.[1-5],127.0.2.[1-5]", "--canary", "1", "--batch", "5", "--", y.mark("seq 200; "+y.wait()))...)
	for _, all := y.ran(); all < 1; _, all = y.ran() {
		time.Sleep(10 * time.Millisecond)
	}
	client.Process.Kill()
	client.Wait()
	y.wants(0, `left +0/10`, "jobs")
	if err := os.WriteFile(filepath.Join(y.home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i := range 200 {
		fmt.Fprintln(&lines, "|", i+1)
	}
	want := `127\.0\.\[1-2\]\.\[1-5\] \(10\)\n-+\n` + regexp.QuoteMeta(lines.String())
	y.wants(0, want, "jobs", "last", "-b")
	if hosts, all := y.ran(); all != 10 || len(hosts) != 10 {
		t.Errorf("ran on %v", hosts)
	}
	y.wants(0, `done +10/10 +0`, "jobs")
	y.wants(0, want, "jobs", "last", "-b") // of the record
	y.wants(0, `(?m)^ok \(10\): `, "run", "--history", strings.Fields(y.wants(0, "", "jobs"))[6])
}

// Clients that follow the same job, with a record of it or without, see the same.
func TestTwoClients(t *testing.T) {
	t.Parallel()
	y := newYard(t, "east", "west")
	client := y.start(run("-w", "127.0.[1-2].[1-3]", "--", "seq 20; "+y.wait()+"; exit 3")...)
	client.until(` 20\n`)
	id := strings.Fields(y.wants(0, "running", "jobs", "--hub", "unix"))[6]
	var looking []*process
	for _, words := range [][]string{{"last"}, {"--hub", "unix", id}, {"--hub", "unix", id}} {
		looking = append(looking, y.start(append([]string{"jobs", "-b"}, words...)...))
	}
	interrupted := y.start("jobs", "--hub", "unix", id)
	interrupted.until(` 20\n`)
	interrupted.Process.Signal(os.Interrupt)
	if exit, _, said := interrupted.ended(); exit != 130 || !strings.Contains(said, "the job goes on") {
		t.Errorf("exit %d: %s", exit, said)
	}
	if err := os.WriteFile(filepath.Join(y.home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(looking, client) {
		if exit, out, said := p.ended(); exit != 1 || !strings.Contains(out+said, "20\n") || !strings.Contains(said, "6 hosts: 6 failed") {
			t.Errorf("%s: exit %d\n%s%s", p.Args[1:], exit, out, said)
		}
	}
	y.wants(0, "^$", "jobs", "--remove", "last")
	y.wants(2, "the hub has no job "+id, "jobs", "--hub", "unix", id)
}

// sshpace continues as sshpace-hub, also in the background.
func TestOtherProgram(t *testing.T) {
	t.Parallel()
	y := newYard(t, "east")
	bin := filepath.Join(y.home, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "sshpace-hub"), []byte(read(t, os.Args[0])), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{
		run("-w", "127.0.1.[1-2]", "--", "echo ran"), run("-w", "127.0.1.[1-2]", "--detach", "--", "echo ran"), {"jobs", "--rerun", "last", "ok"},
	} {
		if exit, out, said := y.startAs("sshpace", line...).ended(); exit != 0 {
			t.Errorf("%s: exit %d: %s%s", line, exit, out, said)
		}
		y.wants(0, "127.0.1.2 -> ran\n(.*\n)*2 hosts: 2 ok", "jobs", "last")
	}
	for _, at := range []string{filepath.Join(y.home, "none"), "ssh://127.0.0.9:1"} {
		y.wants(4, "error: ", "run", "--hub", at, "--pool", "east", "-w", "127.0.1.1", "--", "true")
	}
}

// A run without a terminal is stopped through the hub, and a terminal that closes leaves the job.
func TestLeaveAndStop(t *testing.T) {
	t.Parallel()
	y := newYard(t, "east")
	y.wants(0, `^2\S+Z\n`, run("--detach", "-w", "127.0.1.[1-2]", "--", "sleep 600")...)
	y.wants(0, `Z (done|stopped): (2|1 [\w ]+, 1) (failed|not started|unknown)`, "jobs", "--stop", "last")
	y.wants(0, `^2\S+Z\n`, "jobs", "--rerun", "last", "all", "-q")
	y.wants(0, `Z (done|stopped): (2|1 [\w ]+, 1) (failed|not started|unknown)`, "jobs", "--stop", "last")
	client := y.start(run("-w", "127.0.1.1", "--", "echo begun; sleep 1; echo late")...)
	client.until("begun")
	client.Process.Signal(syscall.SIGHUP)
	if exit, out, said := client.ended(); exit == 0 || strings.Contains(said, "ending the commands") || !strings.Contains(said, "the job goes on; sshpace jobs 2") {
		t.Errorf("exit %d: %s%s", exit, out, said)
	}
	y.wants(0, `127.0.1.1 -> begun\n127.0.1.1 -> late\n`, "jobs", "last")
	client = y.start(run("-w", "127.0.1.1", "--", "echo begun; sleep 600")...)
	client.until("begun")
	client.Process.Signal(os.Interrupt)
	if exit, _, said := client.ended(); exit != 130 || !strings.Contains(said, "interrupted while the command was running") {
		t.Errorf("exit %d: %s", exit, said)
	}
	// nobody is there
	client = y.start(run("-w", "127.0.2.1", "--", "true")...)
	client.until("no launcher of pool west is alive to run 1 host: sshpace work --pool west")
	west := y.work("west")
	client.until("launcher of-west of pool west is alive")
	if exit, _, said := client.ended(); exit != 0 {
		t.Errorf("exit %d: %s", exit, said)
	}
	west.Process.Kill()
}

// What one host says, however much, arrives as it was.
func TestMuchOutput(t *testing.T) {
	t.Parallel()
	y := newYard(t, "east")
	const size = 50 << 20
	y.wants(0, `1 host: 1 ok`, run("-w", "127.0.1.1", "--dir", "out", "--", fmt.Sprintf(`yes "$(seq -s " " 1000)" | head -c %d`, size))...)
	want, err := exec.Command("sh", "-c", fmt.Sprintf(`yes "$(seq -s " " 1000)" | head -c %d`, size)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(y.home, "out", "127.0.1.1.out")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d: %v", len(got), len(want), err)
	}
}
