package drive

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/base/waittest"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshtest"
)

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

// All connections to a host move as many bytes in a slice as the reference, whatever their own
// speed: with sizes of their own, a window of a round trip more or less would decide the ratio.
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

// A host whose start-up files talk, whose command ends early, or where nothing is as we need it, is
// told apart from a slow one.
func TestRemoteHostsThatMisbehave(t *testing.T) {
	for name, tt := range map[string]struct {
		command string // what the host runs instead of ours
		outcome record.Outcome
		says    string
	}{
		"nothing works":  {"exit 1", record.Broken, ""},
		"SFTP only":      {"echo hello; echo This account is for SFTP.; exit 1", record.Broken, `does not run our command; it prints "This account is for SFTP."`},
		"only talks":     {"echo hello; echo oops >&2", record.Broken, "oops"},
		"never answers":  {"sleep 600", record.TimedOut, "no byte arrived in time"},
		"talks for ever": {"yes", record.Broken, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t, "ForceCommand "+tt.command)
			waittest.InTime(t, 2*time.Second, func(limit time.Duration) error {
				r.Connect = limit
				for what, s := range map[string]record.Sample{"open": mustOpen(t, r), "login": mustRun(t, r, record.Trial{Want: aes, Workload: record.Login})} {
					if s.Outcome != tt.outcome && (name != "talks for ever" || s.Outcome != record.TimedOut) || !strings.Contains(s.Detail, tt.says) || s.Phases != nil {
						return fmt.Errorf("%s: %+v", what, s)
					}
				}
				return nil
			})
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
	var times []time.Duration
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			times = append(times, time.Since(began))
			conn.Close()
		}
	}()
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	r := remoteTo(t, client, destination(l.Addr().(*net.TCPAddr).Port, "/dev/null", "/dev/null"))
	_, err = r.Look(t.Context())
	l.Close()
	<-done
	if hostErr := (*HostError)(nil); !errors.As(err, &hostErr) || hostErr.Outcome != record.Refused {
		t.Errorf("Look: %v", err)
	}
	if len(times) != admit.MostRefused {
		t.Fatalf("%d connections, want %d", len(times), admit.MostRefused)
	}
	var least time.Duration // all pauses so far: a connection may be taken late, never early
	for i := 1; i < len(times); i++ {
		if least += min(4*time.Second, time.Second<<(i-1)); times[i] < least {
			t.Errorf("the pauses before connection %d were only %v, want %v", i+1, times[i], least)
		}
	}
}

// The remote command lines are one word for any login shell.
func TestRemoteCommandLines(t *testing.T) {
	mark := openssh.NewMark()
	if mark == openssh.NewMark() || strings.ContainsAny(mark, " '\"$\\") {
		t.Errorf("mark %q", mark)
	}
	command := openssh.Shell(announce(mark) + "; cat; " + announce(mark))
	for _, sh := range []string{"sh", "bash", "dash"} {
		cmd := exec.Command(sh, "-c", command)
		cmd.Stdin = strings.NewReader("payload")
		out, err := cmd.Output()
		if err != nil || strings.Count(string(out), mark+"-ready") != 2 || !strings.Contains(string(out), "payload") {
			t.Errorf("%s: %v\n%s", sh, err, out)
		}
	}
}

// A host that fills the log of ssh -v is ended: after the login through requests that ssh quotes,
// and neither memory nor disk of ours is its to fill.
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
	r := remoteTo(t, client, destination(server.Port(), known, key))
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
	const long = 3 * time.Second
	s := sshtest.StartSshd(t, fmt.Sprintf(`ForceCommand sleep %g; eval "$SSH_ORIGINAL_COMMAND"`, long.Seconds()))
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
	r := remoteTo(t, client, d)
	r.Once, r.Connect = true, long
	r.Login = time.Hour
	if _, err := r.Look(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLateFirstLogin: where no longer time is asked for, a command must begin within that for
// connecting.
func TestLateFirstLogin(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRemote(t, "ForceCommand sleep 600")
	r.Once = true
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		r.Connect = limit
		hostErr := (*HostError)(nil)
		if _, err := r.Look(t.Context()); !errors.As(err, &hostErr) || !strings.Contains(hostErr.Said, fmt.Sprintf("no answer in %v during the start of the command", limit)) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}
