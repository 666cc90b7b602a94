package conf_test

import (
	"fmt"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
)

// fleetConfig has a block for each of n hosts and a few for all of them.
func fleetConfig(n int) string {
	var b strings.Builder
	b.WriteString("Match originalhost *.lab !user root\n  ProxyJump gate\n")
	for i := range n {
		fmt.Fprintf(&b, "Host web%05d\n  HostName web%05d.example.org\n  Port %d\n", i, i, 1024+i%1000)
	}
	b.WriteString("Host web* !web00001\n  User deploy\n  UserKnownHostsFile ~/.ssh/known_hosts.d/%k\n")
	b.WriteString("Host *\n  IdentityFile ~/.ssh/fleet\n  Ciphers ^aes128-gcm@openssh.com\n  ServerAliveInterval 15\n")
	return b.String()
}

func load(b testing.TB, n int) *conf.Config {
	b.Helper()
	l := newLab(b)
	path := l.write(b, "config", fleetConfig(n))
	c, err := conf.Load(b.Context(), conf.Params{Flags: conf.Flags{Config: path}, System: l.system(b), Defaults: defaults(b)})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func BenchmarkLoad10000(b *testing.B) {
	l := newLab(b)
	path := l.write(b, "config", fleetConfig(10_000))
	params := conf.Params{Flags: conf.Flags{Config: path}, System: l.system(b), Defaults: defaults(b)}
	for b.Loop() {
		if _, err := conf.Load(b.Context(), params); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve10000(b *testing.B) {
	c := load(b, 10_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := c.Resolve(b.Context(), host.Endpoint{Name: fmt.Sprintf("web%05d", i%10_000)}); err != nil {
			b.Fatal(err)
		}
	}
}
