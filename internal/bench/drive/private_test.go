package drive

import (
	"testing"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

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
