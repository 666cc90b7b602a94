package sudo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout/copy"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// copied copies files to hosts of one server, which write as root.
func copied(t *testing.T, s *sshtest.Sshd, hosts int, password, dest string, names ...string) *sshtest.Told {
	t.Helper()
	up := copy.Upload{Placing: copy.Placing{AsRoot: true}, Dest: dest, Sources: copy.NewSources(names).Of}
	return run(t, s, hosts, "", password, fleet.Command{Line: "sftp", Dialogue: up.Dialogue})
}

// files makes a directory with small files for a pack, and a larger one.
func files(t *testing.T) (src, dest string) {
	t.Helper()
	src, dest = t.TempDir(), t.TempDir()
	os.Chmod(dest, 0o755)
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(src, fmt.Sprint(i)), fmt.Append(nil, "file ", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(src, "large"), bytes.Repeat([]byte("0123456\n"), 3<<20), 0o640); err != nil {
		t.Fatal(err)
	}
	return src, dest
}

// TestFiles: files go to a directory of root and come from it, by one answer of the password, with
// commands beside SFTP that need it as well.
func TestFiles(t *testing.T) {
	needRoot(t)
	t.Parallel()
	src, _ := files(t)
	for _, rule := range []string{"ALL", "NOPASSWD: ALL", "ALL\nDefaults use_pty\nDefaults timestamp_type=global"} {
		_, dest := files(t)
		s := sshtest.StartSshdWithSudo(t, secret, "nobody ALL=(ALL) "+rule)
		got := copied(t, s, 1, secret, dest+"/new", src+"/")
		if out := got.Text(fleet.Stdout); out != "101 files copied, 24 MiB\n" {
			t.Fatalf("%s: %q %q %+v", rule, out, got.Text(fleet.Stderr), got.Results())
		}
		info, err := os.Stat(filepath.Join(dest, "new", "7"))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", rule, info, err)
		}
		back := t.TempDir()
		down := copy.Download{Sources: []string{dest + "/new/"}, Dir: back}
		got = run(t, s, 1, "", secret, fleet.Command{Line: "sftp", Dialogue: down.Dialogue})
		data, err := os.ReadFile(filepath.Join(back, "ha", "large"))
		if err != nil || len(data) != 24<<20 || got.Text(fleet.Stdout) != "101 files copied, 24 MiB\n" {
			t.Errorf("%s: %d bytes, %v, %q %q", rule, len(data), err, got.Text(fleet.Stdout), got.Text(fleet.Stderr))
		}
	}
}

// TestFilesRefused: where sudo refuses, the copy ends at once, and nothing is on the host.
func TestFilesRefused(t *testing.T) {
	needRoot(t)
	t.Parallel()
	src, dest := files(t)
	for _, tt := range []struct{ password, rules, failure string }{
		{"wrong", "nobody ALL=(ALL) ALL", "sudo did not accept the password"},
		{"", "nobody ALL=(ALL) ALL", "sudo asks for a password, and none was given"},
		{secret, "root ALL=(ALL) ALL", "sudo did not run the command (exit 1): nobody is not "},
		{secret, "nobody ALL=(daemon) NOPASSWD: ALL", "sudo did not run the command (exit 1): Sorry, user nobody is not allowed"},
	} {
		s := sshtest.StartSshdWithSudo(t, secret, tt.rules)
		began := time.Now()
		got := copied(t, s, 2, tt.password, dest, src)
		failed := 0
		for _, r := range got.Results() {
			if r.Class != fleet.Privilege || r.Ran != fleet.RanNo {
				t.Errorf("%+v", r)
			}
			if strings.HasPrefix(r.Err, tt.failure) {
				failed++
			}
		}
		if left, _ := os.ReadDir(dest); failed == 0 || len(left) != 0 || time.Since(began) > 30*time.Second {
			t.Errorf("%s: %+v, left %v after %v", tt.rules, got.Results(), left, time.Since(began))
		}
	}
}

// TestFilesInterrupted: a copy that is ended removes what it has made as root.
func TestFilesInterrupted(t *testing.T) {
	needRoot(t)
	t.Parallel()
	src, dest := files(t)
	s := sshtest.StartSshdWithSudo(t, secret, "nobody ALL=(ALL) ALL")
	up := copy.Upload{Options: copy.Options{Limit: copy.NewLimiter(1 << 20)}, Placing: copy.Placing{AsRoot: true}, Dest: dest + "/new", Sources: copy.NewSources([]string{src + "/"}).Of}
	var begun atomic.Bool
	up.Options.NoVerify = true
	talk := func(ctx context.Context, h host.Host, ch fleet.Channel) error {
		ctx, end := context.WithCancelCause(ctx)
		go func() {
			waittest.Comes(func() bool { _, err := os.Stat(dest + "/new"); return err == nil })
			begun.Store(true)
			end(errors.New("enough"))
		}()
		return up.Dialogue(ctx, h, ch)
	}
	got := run(t, s, 1, "", secret, fleet.Command{Line: "sftp", Dialogue: talk})
	if r := got.Results()[0]; r.Err != "enough" || !begun.Load() {
		t.Errorf("%+v", r)
	}
	left, _ := filepath.Glob(dest + "/new/.*.sshpace-*")
	for _, name := range left {
		if !strings.Contains(name, ".large.sshpace-") { // which can be continued
			t.Errorf("left behind: %s", name)
		}
	}
}
