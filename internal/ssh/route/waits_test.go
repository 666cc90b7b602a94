package route_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
)

// TestWaits: a flag counts before the configuration, that before what is usual, and what is for all
// addresses of a host is divided.
func TestWaits(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	const text = "Host set short\n  ConnectTimeout 3\nHost short\n  HostName 192.0.2.1\nHost set plain proxied\n  HostName localhost\nHost proxied\n  ProxyCommand nc %h %p\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	addresses, four := time.Duration(len(found)), 0
	for _, a := range found {
		if a.Unmap().Is4() {
			four++
		}
	}
	for _, c := range []struct {
		host      string
		flags     conf.Flags
		asked     time.Duration
		each, all time.Duration
	}{
		{"192.0.2.1", conf.Flags{}, 0, 10 * time.Second, 10 * time.Second},
		{"192.0.2.1", conf.Flags{}, 20 * time.Second, 20 * time.Second, 20 * time.Second},
		{"plain", conf.Flags{}, 0, 10 * time.Second / addresses, 10 * time.Second},
		{"plain", conf.Flags{IPv4: true}, 0, 10 * time.Second / time.Duration(four), 10 * time.Second},
		{"set", conf.Flags{}, 0, 3 * time.Second, 10 * time.Second},
		{"set", conf.Flags{}, 20 * time.Second, 20 * time.Second / addresses, 20 * time.Second},
		{"short", conf.Flags{Settings: []string{"ConnectTimeout=30"}}, 0, 30 * time.Second, 90 * time.Second},
		{"proxied", conf.Flags{}, 0, 10 * time.Second, 10 * time.Second},
	} {
		c.flags.Config = config
		p := route.Params{Flags: c.flags, Getenv: os.Getenv, ConnectTimeout: c.asked}
		r, err := route.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		w, err := r.Route(t.Context(), host.Host{Name: c.host})
		if err != nil {
			t.Fatal(err)
		}
		if each, all := p.Waits(t.Context(), w, 10*time.Second); each != c.each || all != c.all {
			t.Errorf("%s, asked %v: %v each, %v in all; want %v and %v", c.host, c.asked, each, all, c.each, c.all)
		}
	}
}
