package transfer_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/relay"
)

// slow is a path on which slowSize takes some seconds.
var slow = relay.Path{Rate: 8e6}

const slowSize = 32 << 20

// copier is scp of a ground.
func copier(b *transfer.Ground) *transfer.Subject {
	return b.Subjects([]record.Mode{record.ModeSCP}, transfer.Options{Suite: suite, Direction: record.Upload})[0]
}

// arriving waits until some of a copy is there.
func arriving(t *testing.T, b *transfer.Ground) {
	t.Helper()
	if !waittest.Comes(func() bool {
		found, _ := filepath.Glob(filepath.Join(b.Here.Directory, "there.arrived.*"))
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.Size() > 1<<20 {
				return true
			}
		}
		return false
	}) {
		t.Error("nothing arrives")
	}
}

// fails runs a copy into which something happens, and says how it ended.
func fails(t *testing.T, b *transfer.Ground, happens func()) string {
	t.Helper()
	var err error
	waittest.Until(t, "a copy that fails", func() bool { // one goes well where it happens too late
		happened := make(chan struct{})
		go func() { arriving(t, b); happens(); close(happened) }()
		_, err = copier(b).Run(t.Context(), slowSize)
		<-happened
		return err != nil
	})
	if names := left(b); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
	return err.Error()
}

// servers are the sshd processes that this program has started.
func servers() (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		var pid, parent int
		var name, state string
		if n, _ := fmt.Sscan(string(text), &pid, &name, &state, &parent); n == 4 && parent == os.Getpid() && strings.HasPrefix(name, "(sshd") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A server that dies in the middle of a file is a failure with a reason, and the next copy goes
// well.
func TestServerDies(t *testing.T) {
	b := open(t, slow)
	why := fails(t, b, func() {
		for _, pid := range servers() {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})
	if !strings.HasPrefix(why, "scp: ") {
		t.Errorf("the reason: %q", why)
	}
	if _, err := copier(b).Run(t.Context(), 1<<20); err != nil {
		t.Errorf("the next copy: %v", err)
	}
}

// So is a path that is cut in the middle.
func TestPathIsCut(t *testing.T) {
	near := open(t, relay.Path{})
	var relays relay.Group
	b, err := near.Over(slow, &relays)
	if err != nil {
		t.Fatal(err)
	}
	if why := fails(t, b, relays.Close); !strings.HasPrefix(why, "scp: ") {
		t.Errorf("the reason: %q", why)
	}
	if _, err := copier(near).Run(t.Context(), 1<<20); err != nil {
		t.Errorf("without the path: %v", err)
	}
}

// A file that changes while it is read does not arrive as it was made, which the hash shows even
// where the length is right.
func TestFileChanges(t *testing.T) {
	b := open(t, slow)
	path, err := b.Here.Of(slowSize)
	if err != nil {
		t.Fatal(err)
	}
	why := fails(t, b, func() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		if _, err := file.WriteAt([]byte("changed"), slowSize-100); err != nil {
			t.Error(err)
		}
	})
	if !strings.Contains(why, "the received data differs from the sent data") {
		t.Errorf("the reason: %q", why)
	}
}

// A process that is deaf to the first signal, as ssh is that is about to wait, is ended all the
// same.
func TestDeaf(t *testing.T) {
	b := open(t, relay.Path{})
	ready := filepath.Join(b.Here.Directory, "ready")
	deaf := transfer.Process{Argv: []string{"sh", "-c", `trap 'trap - TERM' TERM; touch "$0"; while :; do sleep 1; done`, ready}}
	began := time.Now()
	_, err := b.Around(t.Context(), deaf, func(ctx context.Context, _ func() string) error {
		for ctx.Err() == nil {
			if os.Remove(ready) == nil {
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	})
	if took := time.Since(began); err != nil || took > time.Minute {
		t.Errorf("%v after %v", err, took)
	}
}

// A port that somebody has taken is replaced by another; where all are taken it is said.
func TestPortInUse(t *testing.T) {
	b := open(t, relay.Path{})
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	free, asked := b.Port, 0
	b.Port = func() (string, error) {
		if asked++; asked == 1 {
			return port, nil
		}
		return free()
	}
	method := b.Subjects([]record.Mode{record.ModeForwardL}, transfer.Options{Suite: suite, Direction: record.Upload})[0]
	if _, err := method.Run(t.Context(), 1000); err != nil || asked != 2 {
		t.Errorf("after %d ports: %v", asked, err)
	}
	b.Port = func() (string, error) { return port, nil }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := method.Run(ctx, 1000); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("where all ports are taken: %v", err)
	}
}
