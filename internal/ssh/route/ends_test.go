package route_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
)

// TestConfigurationEnds: a configuration that is a pipe without a writer, or has a Match
// exec that does not end, is given up with its context, and leaves no process.
func TestConfigurationEnds(t *testing.T) {
	dir := t.TempDir()
	pipe, slow, pid := filepath.Join(dir, "pipe"), filepath.Join(dir, "slow"), filepath.Join(dir, "pid")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	config := "Match exec \"echo $$ > " + pid + ".new; mv " + pid + ".new " + pid + "; sleep 600\"\nUser x\n"
	if err := os.WriteFile(slow, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, begun := range map[string]string{pipe: pipe, slow: pid} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			waittest.Comes(func() bool { _, err := os.Stat(begun); return err == nil })
			time.Sleep(300 * time.Millisecond) // then it waits
			cancel()
		}()
		began := time.Now()
		r, err := route.New(ctx, route.Params{Flags: conf.Flags{Config: file}, Getenv: os.Getenv, Stderr: os.Stderr})
		if err == nil {
			_, err = r.Route(ctx, host.Host{Name: "h"})
		}
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 5*time.Minute {
			t.Errorf("%s: %v after %v", file, err, took)
		}
	}
	if w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // whoever waits is let go
		w.Close()
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatalf("the Match exec did not start: %v", err)
	}
	number, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	waittest.Gone(t, number)
}
