package reach

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// TestControlPathOpenToOthers: a ControlMaster whose socket others can replace is used, as
// by ssh, and that is said.
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
		path := filepath.Join(dir, "m")
		master := exec.Command("ssh", "-F", "none", "-M", "-S", path, "-N", "-i", s.Key, "-o", "IdentityAgent=none", "-p", fmt.Sprint(s.Port),
			"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-l", s.User, "127.0.0.1")
		if err := master.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { master.Process.Kill(); master.Wait() })
		waittest.Until(t, "a master", sshtest.Listens("unix", path))
		r := try(t, s, Auto, []string{"ControlPath=" + path})
		if said := strings.Contains(r.Note, "others can replace"); r.Status() != fleet.OK || r.Engine != "master" || said != (mode == 0o777) {
			t.Errorf("folder %v: %+v", mode, r)
		}
	}
}
