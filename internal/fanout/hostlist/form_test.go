package hostlist

import (
	"os/exec"
	"strings"
	"testing"

	"sshpace/internal/base/host"
)

// The values of --autostep mean what they mean to nodeset, but for 0, which is never.
func TestAutostepAsNodeset(t *testing.T) {
	for _, names := range []string{"n2 n4 n6 n8 m1", "n1 n3"} {
		var hosts []host.Host
		for name := range strings.FieldsSeq(names) {
			hosts = append(hosts, host.Host{Name: name})
		}
		for _, value := range []string{"3", "auto", "100%", "50%"} {
			var form Form
			if err := form.Autostep.Set(value); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			if err := form.Write(&got, hosts); err != nil {
				t.Fatal(err)
			}
			want, err := exec.Command("nodeset", append([]string{"--autostep=" + value, "-f"}, strings.Fields(names)...)...).Output()
			if err != nil {
				t.Fatalf("%v: install the package clustershell", err)
			}
			if got.String() != string(want) {
				t.Errorf("--autostep %s of %s: %s, want %s", value, names, got.String(), want)
			}
		}
	}
	for _, bad := range []string{"1", "-1", "x", "-5%", "%", "NaN%", "Inf%", ""} {
		if err := new(Autostep).Set(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
