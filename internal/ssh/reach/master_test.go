package reach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
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
