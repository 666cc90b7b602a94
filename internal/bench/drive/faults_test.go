package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/waittest"
	"sshpace/internal/record"
)

func TestUnknownWorkload(t *testing.T) {
	if _, err := newPrivate(t).Run(t.Context(), record.Trial{Workload: "echo"}); err == nil {
		t.Error("the private driver runs anything")
	}
	if _, err := newRemote(t).Run(t.Context(), record.Trial{Workload: record.Copy}); err == nil {
		t.Error("the remote driver runs anything")
	}
}

// faked is a private driver whose client is a shell script: $0 is the log, $1 the command that the
// server would run.
func faked(t *testing.T, script string) *Private {
	t.Helper()
	rig := newRig(t)
	var err error
	if rig.Server, err = rig.Start([]string{"/bin/cat"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rig.Server.Close() })
	return &Private{Rig: rig, Client: func(_ alg.Suite, log, remote string) []string {
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
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		p := faked(t, `(head -c 200000; exec sleep 600) | eval "$1"`)
		p.Connect = limit
		if s := mustOpen(t, p); s.Outcome != record.OK {
			return fmt.Errorf("%+v", s)
		}
		if _, lost, err := p.Slice(t.Context(), sittings(record.Upload)[0], time.Millisecond); lost != "no byte arrived in time" || err != nil {
			return fmt.Errorf("lost %q, %w", lost, err)
		}
		s := mustRun(t, p, record.Trial{Want: aes, Workload: record.Copy, Direction: record.Upload, SizeBytes: 2 << 20})
		if s.Outcome != record.TimedOut || s.Bytes != 200000 {
			return fmt.Errorf("copy: %+v", s)
		}
		return nil
	})
}

// A copy that ends well without all its bytes is none.
func TestShortCopy(t *testing.T) {
	p := faked(t, `head -c 1000000 | eval "$1"`)
	s := mustRun(t, p, record.Trial{Want: aes, Workload: record.Copy, Direction: record.Upload, SizeBytes: 2 << 20})
	if s.Outcome != record.Broken || s.Detail != "1000000 of 2097152 bytes arrived" {
		t.Errorf("%+v", s)
	}
}

// Two directions that differ, or a master that was in the way, are no sample of what was wanted.
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

// A private server that does not let us in can measure nothing: the run ends, and says why.
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
