package drive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/flow"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/record"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// TestMain lets the test's own program be the helper processes.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) > 2 && os.Args[1] == "keep":
		err = safedir.Keep(os.Args[2], os.Stdin)
	case len(os.Args) > 2 && os.Args[1] == "flow":
		err = flow.Main(os.Args[2:], os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var aes = alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha2-256", Kex: "curve25519-sha256"}

// newRig is a folder, a spawner and the helper program.
func newRig(t testing.TB) Rig {
	t.Helper()
	home := t.TempDir()
	dir, err := safedir.NewWorkdir(safedir.WorkdirParams{Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }, Keeper: []string{os.Args[0], "keep"}})
	if err != nil {
		t.Fatal(err)
	}
	spawner := proc.NewSpawner()
	t.Cleanup(func() {
		spawner.Close()
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return Rig{Dir: dir, Spawner: spawner, Flow: []string{os.Args[0], "flow"}, Data: "zero", Connect: 20 * time.Second}
}

// newPrivate drives the installed ssh and sshd.
func newPrivate(t testing.TB) *Private {
	t.Helper()
	rig := newRig(t)
	keys, err := loopback.MakeKeys(rig.Dir)
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	client, err := openssh.FindClient(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	sshd, err := openssh.FindServer(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		t.Fatal(err)
	}
	config := openssh.ServerConfig{
		HostKey: keys.HostKey, AuthorizedKeys: keys.AuthorizedKeys, Home: rig.Dir.Path, User: me.Username, StrictModes: rig.Dir.Strict,
		Offer: alg.Offer{Ciphers: []string{"aes128-ctr", "aes128-gcm@openssh.com"}, MACs: []string{"hmac-sha2-256", "umac-64@openssh.com"}, Kex: []string{"curve25519-sha256", "curve25519-sha256@libssh.org"}},
	}
	if _, err := sshd.Validate(context.Background(), config, rig.Dir.File("sshd_config")); err != nil {
		t.Fatal(err)
	}
	server, err := loopback.Start(sshd.ServeOne(rig.Dir.File("sshd_config")), rig.Spawner, rig.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	host, port := server.Address()
	destination := client.Private(host, port, me.Username, keys.Identity, keys.KnownHosts)
	return &Private{Rig: rig, Server: server, Client: func(want alg.Suite, log, remote string) []string {
		return client.Command(destination, want, log, rig.Connect, remote)
	}}
}

// newRemote drives the installed ssh to an sshd that is nobody's private one.
func newRemote(t *testing.T, extra ...string) *Remote {
	t.Helper()
	d := sshtest.StartSshd(t, extra...)
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(known, []byte("nas "+string(ssh.MarshalAuthorizedKey(d.HostKey))), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Remote{Rig: newRig(t), SSH: client, Destination: destination(d.Port, known, d.Key)}
}

func destination(port int, known, key string) openssh.Destination {
	return openssh.Destination{Host: "127.0.0.1", Label: "nas", Flags: conf.Flags{
		Config: "/dev/null", Port: uint16(port), Identities: []string{key},
		Settings: []string{"HostKeyAlias=nas", "UserKnownHostsFile=" + known, "GlobalKnownHostsFile=none", "IdentitiesOnly=yes", "IdentityAgent=none"},
	}}
}

// opens tells what becomes of one connection that is to stay open.
func opens(ctx context.Context, d interface {
	Open(context.Context, []record.Trial, func(record.Trial, record.Sample) error) error
}) (got record.Sample, err error) {
	err = d.Open(ctx, sittings(record.Upload)[:1], func(_ record.Trial, s record.Sample) error {
		got = s
		return nil
	})
	return got, err
}

func mustOpen(t *testing.T, d interface {
	Open(context.Context, []record.Trial, func(record.Trial, record.Sample) error) error
}) record.Sample {
	t.Helper()
	s, err := opens(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRun(t *testing.T, d interface {
	Run(context.Context, record.Trial) (record.Sample, error)
}, trial record.Trial) record.Sample {
	t.Helper()
	s, err := d.Run(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkOK looks at what every good sample has.
func checkOK(t *testing.T, what string, s record.Sample) {
	t.Helper()
	got := s.Got
	got.HostKey = ""
	if s.Outcome != record.OK || s.Detail != "" || got != aes || s.Start.IsZero() || s.ElapsedNS <= 0 || s.Rekeys != 0 {
		t.Fatalf("%s: %+v", what, s)
	}
}

// empty makes sure that trials leave nothing behind but what belongs to the run.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "host_key", "user_key", "authorized_keys", "known_hosts", "sshd_config", "server.log":
		default:
			t.Errorf("%s is left in the folder", entry.Name())
		}
	}
}

// Controls ask for the same computation under another name.
func TestPrivateOffered(t *testing.T) {
	p := newPrivate(t)
	trial := record.Trial{Want: aes, Workload: record.Login}
	trial.Offered = trial.Want
	trial.Offered.Kex = "curve25519-sha256@libssh.org"
	if s := mustRun(t, p, trial); s.Outcome != record.OK || s.Got.Kex != trial.Offered.Kex {
		t.Errorf("%+v", s)
	}
}

func TestPrivateLogin(t *testing.T) {
	p := newPrivate(t)
	s := mustRun(t, p, record.Trial{Want: aes, Workload: record.Login})
	checkOK(t, "login", s)
	if s.Phases == nil || s.Phases.LoginNS <= 0 || s.Phases.LoginNS > s.ElapsedNS || *s.Phases.ClientCPUNS <= 0 || *s.Phases.ServerCPUNS <= 0 {
		t.Errorf("phases %+v", s.Phases)
	}
	empty(t, p.Dir.Path)
}

func TestPrivateCopy(t *testing.T) {
	p := newPrivate(t)
	for _, d := range []record.Direction{record.Upload, record.Download} {
		for _, size := range []unit.Bytes{1, 3<<20 + 7} {
			s := mustRun(t, p, record.Trial{Want: aes, Workload: record.Copy, Direction: d, SizeBytes: size})
			checkOK(t, string(d), s)
			if s.Bytes != size || *s.ClientCPUNS <= 0 || *s.ServerCPUNS <= 0 {
				t.Errorf("%s of %d: %+v", d, size, s)
			}
		}
	}
	empty(t, p.Dir.Path)
}

func TestUnknownWorkload(t *testing.T) {
	if _, err := newPrivate(t).Run(t.Context(), record.Trial{Workload: "echo"}); err == nil {
		t.Error("the private driver runs anything")
	}
	if _, err := newRemote(t).Run(t.Context(), record.Trial{Workload: record.Copy}); err == nil {
		t.Error("the remote driver runs anything")
	}
}

// faked is a private driver whose client is a shell script: $0 is the log, $1 the
// command that the server would run.
func faked(t *testing.T, script string) *Private {
	t.Helper()
	rig := newRig(t)
	server, err := loopback.Start([]string{"/bin/cat"}, rig.Spawner, rig.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return &Private{Rig: rig, Server: server, Client: func(_ alg.Suite, log, remote string) []string {
		return []string{"/bin/sh", "-c", script, log, remote}
	}}
}

func TestClientsThatFail(t *testing.T) {
	t.Parallel() // it waits most of the time
	const banner = `echo "debug1: Remote protocol version 2.0, remote software version X" >"$0"; `
	trials := []record.Trial{{Want: aes, Workload: record.Sitting}, {Want: aes, Workload: record.Login}, {Want: aes, Workload: record.Copy, Direction: record.Upload, SizeBytes: 1 << 20}}
	for name, tt := range map[string]struct {
		script  string
		outcome record.Outcome
		says    string
	}{
		"never ready":            {"exec sleep 60", record.TimedOut, "no byte arrived in time"},
		"ignores its end":        {"trap '' TERM HUP INT; sleep 60; sleep 60", record.TimedOut, "no byte arrived in time"},
		"ends early":             {"exit 255", record.Broken, "ssh ended without a word"},
		"ends early with a word": {"echo out of luck >&2; exit 255", record.Broken, "out of luck"},
		"reset":                  {banner + `echo "Connection reset by 127.0.0.1 port 1" >>"$0"; exit 255`, record.Broken, "Connection reset"},
		"refused":                {`echo "kex_exchange_identification: Connection closed by remote host" >"$0"; exit 255`, record.Refused, "Connection closed"},
		"killed":                 {"kill -9 $$", record.Broken, "sh was killed by signal 9 (killed)"},
		"floods its log":         {`exec yes >"$0"`, record.Broken, "write more than 1 MiB of debug messages; it was ended"},
		"floods":                 {"yes | head -c 1000000 >&2; echo the end >&2; exit 255", record.Broken, "the end"},
	} {
		for _, trial := range trials {
			p := faked(t, tt.script)
			if tt.outcome == record.TimedOut {
				p.Connect = 300 * time.Millisecond
			}
			run := func() record.Sample { return mustRun(t, p, trial) }
			if trial.Workload == record.Sitting {
				run = func() record.Sample { return mustOpen(t, p) }
			}
			if s := run(); s.Outcome != tt.outcome || !strings.Contains(s.Detail, tt.says) || s.ClientCPUNS != nil || s.Phases != nil {
				t.Errorf("%s, %s %s: %+v; want %s, %q", name, trial.Workload, trial.Direction, s, tt.outcome, tt.says)
			}
			empty(t, p.Dir.Path)
		}
	}
}

// A slice that stands still is given up, and a copy, whose bytes until then are counted.
func TestStall(t *testing.T) {
	t.Parallel() // it waits most of the time
	p := faked(t, `(head -c 200000; exec sleep 60) | eval "$1"`)
	p.Connect = 4 * time.Second // more than opening takes on a busy machine
	if s := mustOpen(t, p); s.Outcome != record.OK {
		t.Fatalf("%+v", s)
	}
	if _, lost, err := p.Slice(t.Context(), sittings(record.Upload)[0], time.Millisecond); lost != "no byte arrived in time" || err != nil {
		t.Errorf("lost %q, %v", lost, err)
	}
	s := mustRun(t, p, record.Trial{Want: aes, Workload: record.Copy, Direction: record.Upload, SizeBytes: 2 << 20})
	if s.Outcome != record.TimedOut || s.Bytes != 200000 {
		t.Errorf("copy: %+v", s)
	}
}

// A copy that ends well without all its bytes is none.
func TestShortCopy(t *testing.T) {
	p := faked(t, `head -c 1000000 | eval "$1"`)
	s := mustRun(t, p, record.Trial{Want: aes, Workload: record.Copy, Direction: record.Upload, SizeBytes: 2 << 20})
	if s.Outcome != record.Broken || s.Detail != "1000000 of 2097152 bytes arrived" {
		t.Errorf("%+v", s)
	}
}

// Two directions that differ, or a master that was in the way, are no sample of
// what was wanted.
func TestMismatchedLogs(t *testing.T) {
	const ok = `eval "$1"; exit 0`
	kex := func(up, down string) string {
		return fmt.Sprintf(`printf 'debug1: kex: client->server cipher: %s MAC: <implicit> compression: none\ndebug1: kex: server->client cipher: %s MAC: <implicit> compression: none\n' >"$0"; `, up, down)
	}
	for name, tt := range map[string]struct {
		script string
		want   record.Outcome
	}{
		"alike":      {kex("a", "a") + ok, record.OK},
		"directions": {kex("a", "b") + ok, record.Mismatched},
		"master":     {`echo "debug1: mux_client_request_session: master session id: 2" >"$0"; ` + ok, record.Mismatched},
	} {
		s := mustRun(t, faked(t, tt.script), record.Trial{Want: aes, Workload: record.Login})
		if s.Outcome != tt.want {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A client that does not name the key exchange had only one to choose.
func TestOldClientsKeyExchange(t *testing.T) {
	s := mustRun(t, faked(t, `printf 'debug1: kex: client->server aes128-ctr hmac-sha2-256 none\ndebug1: kex: server->client aes128-ctr hmac-sha2-256 none\n' >"$0"; eval "$1"`),
		record.Trial{Want: aes, Workload: record.Login})
	if s.Outcome != record.OK || s.Got != aes {
		t.Errorf("%+v", s)
	}
}

// A private server that does not let us in can measure nothing: the run ends,
// and says why.
func TestPrivateServerThatDeniesUs(t *testing.T) {
	p := newPrivate(t)
	if err := os.WriteFile(p.Dir.File("authorized_keys"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := opens(t.Context(), p)
	var denied *LoginError
	if !errors.As(err, &denied) || !strings.Contains(denied.Detail, "Permission denied") {
		t.Errorf("denied: %v", err)
	}
	p = newPrivate(t)
	if err := os.WriteFile(p.Dir.File("known_hosts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = p.Run(t.Context(), record.Trial{Want: aes, Workload: record.Login}); !errors.As(err, &denied) || !strings.Contains(denied.Detail, "host key is known") {
		t.Errorf("unknown host key: %v", err)
	}
}

// The server's reason is told with the failure.
func TestPrivateServersReason(t *testing.T) {
	p := newPrivate(t)
	config, err := os.ReadFile(p.Dir.File("sshd_config"))
	if err != nil {
		t.Fatal(err)
	}
	me, _ := user.Current()
	text := strings.Replace(string(config), "AllowUsers "+me.Username, "AllowUsers nobody-else", 1)
	if err := os.WriteFile(p.Dir.File("sshd_config"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context(), record.Trial{Want: aes, Workload: record.Login}); err == nil || !strings.Contains(err.Error(), "not allowed because not listed in AllowUsers") {
		t.Errorf("%v", err)
	}
}

func TestCancelledTrials(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, r := faked(t, "exec sleep 60"), newRemote(t, "ForceCommand sleep 60")
	login := record.Trial{Want: aes, Workload: record.Login}
	for name, run := range map[string]func(context.Context) (record.Sample, error){
		"private":       func(ctx context.Context) (record.Sample, error) { return opens(ctx, p) },
		"remote":        func(ctx context.Context) (record.Sample, error) { return opens(ctx, r) },
		"private login": func(ctx context.Context) (record.Sample, error) { return p.Run(ctx, login) },
		"remote login":  func(ctx context.Context) (record.Sample, error) { return r.Run(ctx, login) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		s, err := run(ctx)
		if err != nil || s.Outcome != record.Aborted {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	empty(t, p.Dir.Path)
	empty(t, r.Dir.Path)
}

// A slice ends with its context, and its connection is not lost by that.
func TestCancelledSlice(t *testing.T) {
	p := faked(t, `(head -c 200000; exec sleep 60) | eval "$1"`)
	mustOpen(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, lost, err := p.Slice(ctx, sittings(record.Upload)[0], time.Millisecond); lost != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("lost %q, %v", lost, err)
	}
	p.Close(1)
}

func TestRemote(t *testing.T) {
	r := newRemote(t)
	look, err := r.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(look.Version, "OpenSSH_") || !strings.HasPrefix(look.Machine, "Linux ") || !look.Proc || len(look.Offer.Ciphers) == 0 || look.RoundTrip <= 0 || look.RoundTrip > look.Login {
		t.Errorf("look: %+v", look)
	}
	s := mustRun(t, r, record.Trial{Want: aes, Workload: record.Login})
	checkOK(t, "login", s)
	if s.Phases == nil || s.Phases.LoginNS <= 0 || *s.Phases.ClientCPUNS <= 0 || s.Phases.ServerCPUNS != nil {
		t.Errorf("phases %+v", s.Phases)
	}
	empty(t, r.Dir.Path)
}

// All connections to a host move as many bytes in a slice as the reference, whatever their own speed:
// with sizes of their own, a window of a round trip more or less would decide the ratio.
func TestSlicesOfAHostAreAlike(t *testing.T) {
	r := newRemote(t)
	reference := record.Trial{ID: 1, Want: alg.NewSuite("chacha20-poly1305@openssh.com", "", ""), Workload: record.Sitting, Direction: record.Upload, Role: record.RoleReference}
	candidate := record.Trial{ID: 2, Want: alg.NewSuite("aes128-gcm@openssh.com", "", ""), Workload: record.Sitting, Direction: record.Upload}
	if err := r.Open(t.Context(), []record.Trial{reference, candidate}, func(_ record.Trial, s record.Sample) error {
		if s.Outcome != record.OK {
			t.Errorf("%+v", s)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	defer r.Close(1, 2)
	alike, sizes := 0, []unit.Bytes{}
	for len(sizes) < 60 && alike < 2 { // one that stood still for long moves fewer
		for _, trial := range []record.Trial{reference, candidate} {
			s, lost, err := r.Slice(t.Context(), trial, 20*time.Millisecond)
			if lost != "" || err != nil {
				t.Fatalf("%q, %v", lost, err)
			}
			sizes = append(sizes, s.Bytes)
		}
		if n := len(sizes); sizes[n-1] == sizes[n-2] {
			alike++
		}
	}
	if alike < 2 {
		t.Errorf("%v bytes", sizes)
	}
}

// A fresh connection is awake when it gets no faster any more, as a real one did within 0.3 s.
func TestAwakening(t *testing.T) {
	a := awakening{fastest: math.Inf(1)}
	for i, megabytes := range []float64{48, 639, 810, 849, 1026, 1058, 1024, 1110} {
		if got, want := a.awake(1e3/megabytes), i == 7; got != want {
			t.Errorf("after slice %d (%g MB/s): awake %v", i+1, megabytes, got)
		}
	}
}

// A host whose start-up files talk, whose command ends early, or where nothing
// is as we need it, is told apart from a slow one.
func TestRemoteHostsThatMisbehave(t *testing.T) {
	for name, tt := range map[string]struct {
		command string // what the host runs instead of ours
		outcome record.Outcome
		says    string
	}{
		"nothing works":  {"exit 1", record.Broken, ""},
		"SFTP only":      {"echo hello; echo This account is for SFTP.; exit 1", record.Broken, `does not run our command; it prints "This account is for SFTP."`},
		"only talks":     {"echo hello; echo oops >&2", record.Broken, "oops"},
		"never answers":  {"sleep 8", record.TimedOut, "no byte arrived in time"},
		"talks for ever": {"yes", record.Broken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t, "ForceCommand "+tt.command)
			r.Connect = 4 * time.Second // more than a login takes on a busy machine
			for what, s := range map[string]record.Sample{"open": mustOpen(t, r), "login": mustRun(t, r, record.Trial{Want: aes, Workload: record.Login})} {
				if s.Outcome != tt.outcome && (name != "talks for ever" || s.Outcome != record.TimedOut) || !strings.Contains(s.Detail, tt.says) || s.Phases != nil {
					t.Errorf("%s: %+v", what, s)
				}
			}
			_, err := r.Look(t.Context())
			if hostErr := (*HostError)(nil); !errors.As(err, &hostErr) {
				t.Errorf("Look: %v", err)
			}
			empty(t, r.Dir.Path)
		})
	}
}

// A host that refuses is asked again after a growing pause, and then left alone.
func TestRemoteGivesUp(t *testing.T) {
	t.Parallel() // it waits most of the time
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var times []time.Time
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			times = append(times, time.Now())
			conn.Close()
		}
	}()
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	r := &Remote{Rig: newRig(t), SSH: client, Destination: destination(l.Addr().(*net.TCPAddr).Port, "/dev/null", "/dev/null")}
	_, err = r.Look(t.Context())
	l.Close()
	<-done
	if hostErr := (*HostError)(nil); !errors.As(err, &hostErr) || hostErr.Outcome != record.Refused {
		t.Errorf("Look: %v", err)
	}
	if len(times) != maxRefusals {
		t.Fatalf("%d connections, want %d", len(times), maxRefusals)
	}
	for i := 1; i < len(times); i++ {
		if gap := times[i].Sub(times[i-1]); gap < min(longestWait, refusalWait<<(i-1))-50*time.Millisecond {
			t.Errorf("pause %d was only %v", i, gap)
		}
	}
}

// The remote command lines are one word for any login shell.
func TestRemoteCommandLines(t *testing.T) {
	mark := newMark()
	if mark == newMark() || strings.ContainsAny(mark, " '\"$\\") {
		t.Errorf("mark %q", mark)
	}
	command := shell(announce(mark) + "; cat; " + announce(mark))
	for _, sh := range []string{"sh", "bash", "dash"} {
		cmd := exec.Command(sh, "-c", command)
		cmd.Stdin = strings.NewReader("payload")
		out, err := cmd.Output()
		if err != nil || strings.Count(string(out), mark+"-ready") != 2 || !strings.Contains(string(out), "payload") {
			t.Errorf("%s: %v\n%s", sh, err, out)
		}
	}
}

// A host that fills the log of ssh -v is ended: after the login through requests
// that ssh quotes, and neither memory nor disk of ours is its to fill.
func TestRemoteFloodsLog(t *testing.T) {
	known := filepath.Join(t.TempDir(), "known")
	server := (&sshtest.Server{Exec: func(s *sshtest.Session) {
		for word := strings.Repeat("x", 900); ; {
			if _, err := s.SendRequest(word, false, nil); err != nil {
				return
			}
		}
	}}).Start(t)
	if err := os.WriteFile(known, []byte("nas "+sshtest.AuthorizedLine(server.HostKey.PublicKey())), 0o600); err != nil {
		t.Fatal(err)
	}
	key, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	r := &Remote{Rig: newRig(t), SSH: client, Destination: destination(server.Port(), known, key)}
	const says = "the host made ssh write more than 1 MiB of debug messages"
	var hostErr *HostError
	if _, err := r.Look(t.Context()); !errors.As(err, &hostErr) || hostErr.Outcome != record.Broken || !strings.Contains(hostErr.Said, says) {
		t.Errorf("look: %v", err)
	}
	for what, s := range map[string]record.Sample{"open": mustOpen(t, r), "login": mustRun(t, r, record.Trial{Want: aes, Workload: record.Login})} {
		if s.Outcome != record.Broken || !strings.Contains(s.Detail, says) {
			t.Errorf("%s: %+v", what, s)
		}
	}
	empty(t, r.Dir.Path)
}

// TestSlowFirstLogin: a login may take longer than connecting, where that is asked for.
func TestSlowFirstLogin(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := sshtest.StartSshd(t, `ForceCommand sleep 8; eval "$SSH_ORIGINAL_COMMAND"`)
	known := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(known, []byte("nas "+sshtest.AuthorizedLine(s.HostKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	d := destination(s.Port, known, s.Key)
	d.User = s.User
	r := &Remote{Rig: newRig(t), SSH: client, Destination: d, Once: true}
	r.Connect = 4 * time.Second // more than a login takes on a busy machine
	if hostErr := (*HostError)(nil); true {
		if _, err := r.Look(t.Context()); !errors.As(err, &hostErr) || !strings.Contains(hostErr.Said, "no answer in 4s during the start of the command") {
			t.Errorf("got %v", err)
		}
	}
	r.Login = time.Minute
	if _, err := r.Look(t.Context()); err != nil {
		t.Error(err)
	}
}
