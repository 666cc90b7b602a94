//go:build linux

package findings_test

import (
	"strings"
	"testing"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/doctor"
	"sshpace/internal/show/findings"
)

// A diagnosis counts what it lists, says nothing twice, fits a terminal of 80 by 24 and keeps its
// indent; what is normal has one sentence unless all is wanted.
func TestDiagnosisText(t *testing.T) {
	command := "ssh -o KexAlgorithms=-" + strings.Repeat("sntrup761x25519-sha512,", 5) + "curve25519-sha256 web1"
	r := &findings.Diagnosis{Target: "web1", Complete: true, Login: &stats.Interval{Value: 9e8, Lo: 9e8, Hi: 9e8, N: 3}, Checks: []string{"kex", "stall"}, Findings: []doctor.Finding{
		{Check: "kex", What: strings.Repeat("the server takes long ", 8), Cost: stats.Interval{Value: 4e8}, Per: "login", Evidence: "400 ms more than usual", Where: "on this machine", Do: command, Gain: "about 400 ms"},
		{Check: "stall", What: "each side waits for an acknowledgement", Minor: true, Cost: stats.Interval{Value: 8e7}, Per: "login", Evidence: "80 ms", Where: "as root", Do: "ip route replace x\nip route replace y", Gain: "about 80 ms"},
	}}
	show := func(all bool) string {
		var b strings.Builder
		if err := r.Text(&b, 80, all); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	brief := show(false)
	if !strings.HasPrefix(brief, "1 problem found. A login to web1 takes 900 ms") || strings.Contains(brief, "2. ") || strings.Contains(brief, "ip route") || strings.Contains(brief, "…") ||
		!strings.Contains(brief, "1. 400 ms a login (kex)\n") || !strings.Contains(brief, "\n         "+command+"\n") ||
		!strings.HasSuffix(brief, "\n80.0 ms a login, normal (stall): each side waits for an acknowledgement\nFor details and what to do, add --all\n") {
		t.Errorf("one problem, and one thing that is normal:\n%s", brief)
	}
	for _, line := range strings.Split(brief, "\n") {
		if len(line) > 80 && !strings.Contains(line, command) {
			t.Errorf("wider than 80: %s", line)
		}
	}
	if full := show(true); !strings.Contains(full, "\n         ip route replace x\n         ip route replace y\n") || strings.Contains(full, "--all") {
		t.Errorf("all of it:\n%s", full)
	}
	for range 3 {
		r.Findings = append(r.Findings[:1:1], r.Findings...)
	}
	many := show(false)
	if !strings.HasPrefix(many, "4 problems found, the most expensive first.") || !strings.Contains(many, "\n4. 400 ms a login (kex): the server") || !strings.Contains(many, "For details and what to do, add --all") {
		t.Errorf("more than a screen has room for:\n%s", many)
	}
}
