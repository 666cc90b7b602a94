package job_test

import (
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet/hostset"
)

// A host is in the pool whose set has its name, and in one only.
func TestPools(t *testing.T) {
	groups := hostset.Listing(func() ([]string, error) { return []string{"db[1-2]"}, nil })
	read := func(text string) (job.Pools, error) { return job.ReadPools(strings.NewReader(text), "pools", groups) }
	p, err := read("# regions\n\neast: web[1-2],root@web3:22\nwest: web9\nwest: @all\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"web1": "east", "ops@web3": "east", "web9:2222": "west", "db2": "west"} {
		hosts := hostsOf(t, []string{name})
		if err := p.Check(hosts, "pools"); err != nil || p.Of(hosts[0]) != want {
			t.Errorf("%s: %v, %v", name, p[hosts[0].Name], err)
		}
	}
	if err := p.Check([]host.Host{{Name: "web7"}}, "pools"); err == nil || !strings.Contains(err.Error(), "web7 is in no pool of pools") {
		t.Error(err)
	}
	p, err = read("a: x[1-3],x1\nb: x3\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check([]host.Host{{Name: "x1"}}, "pools"); err != nil {
		t.Error(err)
	}
	if err := p.Check([]host.Host{{Name: "x3"}}, "pools"); err == nil || !strings.Contains(err.Error(), "several pools of pools: a and b") {
		t.Error(err)
	}
	for text, want := range map[string]string{"web\n": "want `group: set`", "a.b: x\n": "not a name of a pool", "a: x[1-\n": "pool a", "a: @nosuch:x\n": "pool a"} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
