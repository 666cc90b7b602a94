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
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
)

// TestConfigurationEnds: a configuration that is a pipe without a writer, or has a Match exec that
// does not end, is given up with its context, by us and by an ssh that is asked for it, and leaves
// no process.
func TestConfigurationEnds(t *testing.T) {
	ssh, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(context.Context, conf.Flags) error{
		"ssh": func(ctx context.Context, f conf.Flags) error {
			_, err := ssh.Effective(ctx, openssh.Destination{Host: "h", Flags: f})
			return err
		},
		"route": func(ctx context.Context, f conf.Flags) error {
			r, err := route.New(ctx, route.Params{Flags: f, Getenv: os.Getenv, Stderr: os.Stderr})
			if err == nil {
				_, err = r.Route(ctx, host.Host{Name: "h"})
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { endless(t, read) })
	}
}

// endless has configurations read that do not end.
func endless(t *testing.T, read func(context.Context, conf.Flags) error) {
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
		err := read(ctx, conf.Flags{Config: file})
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
