package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sshpace/internal/record"
)

// quickHost is a host with nothing wrong, and some phases that took as long, in ms.
func quickHost(name string, slow map[record.Phase]int) *record.Host {
	exit := 0
	h := &record.Host{Name: name, RTTNS: 300 * time.Microsecond, WallNS: 80 * time.Millisecond, SigningNS: time.Millisecond, Exit: &exit}
	for _, p := range record.AllPhases {
		took := 5 * time.Millisecond
		if ms := slow[p]; ms > 0 {
			took = time.Duration(ms) * time.Millisecond
		}
		h.Phases = append(h.Phases, record.LoginPhase{Phase: p, WallNS: took})
	}
	return h
}

// ends makes a phase the last one, in which the login failed.
func ends(h *record.Host, p record.Phase, class, banner string) *record.Host {
	for i := range h.Phases {
		if h.Phases[i].Phase == p {
			h.Phases[i].Unended, h.Phases = true, h.Phases[:i+1]
			break
		}
	}
	h.Class, h.Failure, h.Banner, h.Exit = class, "it failed", banner, nil
	return h
}

// answers are those of a shell whose look-up of the client took so long.
func answers(more string, reverse time.Duration) *Server {
	s := hear(strings.NewReader("@client 192.0.2.2\n@shell /bin/bash\n" + more + "@account\n@reverse\n@end\n"))
	s.Reverse = one(reverse)
	return s
}

// TestFleetNames: one login names the cause, and what the shell answers makes it one of the
// suspects.
func TestFleetNames(t *testing.T) {
	for _, test := range []struct {
		host  *record.Host
		heard *Server
		want  string // the check and a part of what it says
	}{
		{host: quickHost("fine", nil)},
		{host: quickHost("one lost packet", map[record.Phase]int{record.PhaseAuthNone: 230, record.PhaseKex: 500})},
		{quickHost("dns", map[record.Phase]int{record.PhaseAuthNone: 5000}), answers("@sshd usedns yes\n", 5*time.Second), "request: the server looks up this machine's name at every login (UseDNS)"},
		{quickHost("either", map[record.Phase]int{record.PhaseAuthNone: 5000}), nil, "request: the server takes long to answer the first login request: it looks up"},
		{quickHost("keys", map[record.Phase]int{record.PhaseQuery: 2000, record.PhaseSign: 2000}), answers("@sshd authorizedkeyscommand /bin/keys\n", 0), "authorized-keys: the server runs AuthorizedKeysCommand"},
		{quickHost("pam", map[record.Phase]int{record.PhaseChannel: 2000}), answers("@pam session pam_mount.so\n", 0), "session: the server takes long to open a session: probably PAM's session module pam_mount.so"},
		{quickHost("name", map[record.Phase]int{record.PhaseStart: 2000}), nil, "dns: looking up the host's address is slow"},
		{ends(quickHost("mtu", map[record.Phase]int{record.PhaseKex: 9000}), record.PhaseKex, "timeout", "SSH-2.0-x"), nil, "kex: a login hangs in the key exchange: probably its large packets do not fit"},
		{ends(quickHost("late", map[record.Phase]int{record.PhaseQuery: 1500, record.PhaseSign: 1400}), record.PhaseSign, "timeout", "SSH-2.0-x"), nil, "authorized-keys: the server takes long to decide whether it knows the key"},
		{ends(quickHost("penalty", nil), record.PhaseVersion, "throttled", "Not allowed at this time"), nil, "refused: the server refuses our address for a while (PerSourcePenalties)"},
		{host: ends(quickHost("down", map[record.Phase]int{record.PhaseTCP: 9000}), record.PhaseTCP, "timeout", "")},
		{func() *record.Host {
			h := quickHost("far", map[record.Phase]int{record.PhaseTCP: 400, record.PhaseAuthNone: 400, record.PhaseQuery: 400, record.PhaseExec: 400, record.PhaseVersion: 400})
			h.Via = []string{"gate"}
			return h
		}(), nil, ""},
	} {
		f := &Fleet{}
		if test.heard != nil {
			f.heard = map[*record.Host]*Server{test.host: test.heard}
		}
		f.Explain([]*record.Host{test.host})
		var got []string
		for _, c := range test.host.Causes {
			got = append(got, c.Check+": "+c.What)
		}
		if all := strings.Join(got, "\n"); len(got) > 1 || !strings.HasPrefix(all, test.want) || test.want == "" && all != "" {
			t.Errorf("%s: %q, want %q", test.host.Name, got, test.want)
		}
	}
}

// TestFleetOnBusyMachine: what all hosts wait for on a busy machine is nobody's fault, and on an
// idle one it is. One that waits much longer than others is named on both.
func TestFleetOnBusyMachine(t *testing.T) {
	for _, busy := range []bool{true, false} {
		var all []*record.Host
		for i := range 100 {
			ms := 600
			if i == 7 {
				ms = 6000
			}
			h := quickHost(fmt.Sprint(i), map[record.Phase]int{record.PhaseAuthNone: ms})
			for k := range h.Phases {
				if busy {
					h.Phases[k].BusyNS = h.Phases[k].WallNS
				}
			}
			all = append(all, h)
		}
		(&Fleet{}).Explain(all)
		named := 0
		for _, h := range all {
			named += len(h.Causes)
		}
		if want := map[bool]int{true: 1, false: 100}[busy]; named != want || len(all[7].Causes) != 1 {
			t.Errorf("busy %v: %d hosts are named, want %d", busy, named, want)
		}
	}
}
