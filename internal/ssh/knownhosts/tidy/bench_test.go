package tidy

import (
	"fmt"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// BenchmarkSplit1400 splits 1,400 hosts out of a plain file of 2.1 MB.
func BenchmarkSplit1400(b *testing.B) {
	file := sshtest.KnownHostsFile(b, twoMegabytes())
	hosts := make([]host.Host, 1400)
	for i := range hosts {
		hosts[i].Name = sshtest.FleetHost(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := Split(b.Context(), index.Open(file), b.TempDir(), SplitOptions{Hosts: hosts}); err != nil || r.Written != 1401 {
			b.Fatal(r, err)
		}
	}
}

// BenchmarkKeygenFind is what Split replaces: one ssh-keygen -F in that file.
func BenchmarkKeygenFind(b *testing.B) {
	file := sshtest.KnownHostsFile(b, twoMegabytes())
	for b.Loop() {
		if out, err := sshtest.Keygen("-F", sshtest.FleetHost(700), "-f", file); err != nil {
			b.Fatal(err, out)
		}
	}
}

// twoMegabytes is the shape of a real fleet's file: 1,400 hosts under their name and address, with
// three types of keys, and as many lines of other hosts.
func twoMegabytes() string {
	var text strings.Builder
	rsa, ec := knownhosts.MarshalKey(sshtest.RSAKey().PublicKey()), knownhosts.MarshalKey(sshtest.ECKey().PublicKey())
	for i := 0; text.Len() < 2_100_000; i++ {
		names := fmt.Sprintf("%s,10.%d.%d.%d ", sshtest.FleetHost(i), i>>16, i>>8&255, i&255)
		fmt.Fprintf(&text, "%s%s\n%s%s\n%s%s\n", names, sshtest.KeyText(i), names, ec, names, rsa)
	}
	return text.String()
}
