package reach

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// TestControlPathLink: a link of another user leads to no ControlMaster, though it be one of ours;
// our own link does.
func TestControlPathLink(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	s := sshtest.StartSshd(t)
	socket, directory := filepath.Join(masterOf(t, s, t.TempDir()), "m"), t.TempDir()
	for owner, engine := range map[int]string{0: "master", 65534: "native"} {
		link := filepath.Join(directory, fmt.Sprint(owner))
		if err := errors.Join(os.Symlink(socket, link), os.Lchown(link, owner, owner)); err != nil {
			t.Fatal(err)
		}
		r := try(t, s, Auto, answersTo(s.Key, "ControlPath="+link, "UserKnownHostsFile="+filepath.Join(directory, "known")))
		if r.Status() != fleet.OK || r.Engine != engine || strings.Contains(r.Note, "link of another user") != (owner != 0) {
			t.Errorf("a link of %d: %+v", owner, r)
		}
	}
}

// masterOf starts a ControlMaster of a server at dir/m, and returns dir.
func masterOf(t *testing.T, s *sshtest.Sshd, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "m")
	serve(t, path, "ssh", "-F", "none", "-M", "-S", path, "-N", "-i", s.Key, "-o", "IdentityAgent=none", "-p", fmt.Sprint(s.Port),
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-l", s.User, "127.0.0.1")
	return dir
}

// TestControlPathOpenToOthers: a ControlMaster whose socket others can replace is used, as by ssh,
// and that is said.
func TestControlPathOpenToOthers(t *testing.T) {
	s := sshtest.StartSshd(t)
	for _, mode := range []os.FileMode{0o700, 0o777} {
		dir, err := os.MkdirTemp("", "cp")
		if err == nil {
			err = os.Chmod(dir, mode)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		path := filepath.Join(masterOf(t, s, dir), "m")
		r := try(t, s, Auto, []string{"ControlPath=" + path})
		if said := strings.Contains(r.Note, "others can replace"); r.Status() != fleet.OK || r.Engine != "master" || said != (mode == 0o777) {
			t.Errorf("directory %v: %+v", mode, r)
		}
	}
}

// TestHungMasterOfJumpHost: the ControlMaster of a jump host that hangs is asked once, and so is
// the jump host that then refuses: all hosts behind it fail at once.
func TestHungMasterOfJumpHost(t *testing.T) {
	s := sshtest.StartSshd(t)
	socket := filepath.Join(masterOf(t, s, t.TempDir()), "m")
	out, err := exec.Command("ssh", "-F", "none", "-S", socket, "-O", "check", "x").CombinedOutput()
	var pid int
	if _, scanned := fmt.Sscanf(string(out), "Master running (pid=%d)", &pid); err != nil || scanned != nil {
		t.Fatalf("%s: %v, %v", out, err, scanned)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	closed, err := sshtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	file, warnings := filepath.Join(t.TempDir(), "config"), &bytes.Buffer{}
	put(t, file, fmt.Sprintf("Host web*\nProxyJump gate\nHost gate\nPort %d\nControlPath %s\n", closed, socket)+everywhere(t, s.User, s.Key, s.Port, s.HostKey), 0o600)
	executor, err := New(t.Context(), Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: file}, Warnings: warnings}, Engine: Native})
	if err != nil {
		t.Fatal(err)
	}
	defer executor.Close()
	sink := &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), fanout.Params{RetryFor: -1, Fanout: 1}, []host.Host{{Name: "web1"}, {Name: "web2"}}, fleet.Command{Line: "true"}, executor, sink); err != nil {
		t.Fatal(err)
	}
	for _, r := range sink.Results() {
		if r.Class != fleet.Refused || !strings.HasPrefix(r.Err, "jump host ") {
			t.Errorf("%+v", r)
		}
	}
	if strings.Count(warnings.String(), "does not answer; connected anew") != 1 {
		t.Errorf("warnings: %s", warnings)
	}
}
