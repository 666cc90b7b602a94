package route

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
)

func routerOf(t *testing.T, config string) (*Router, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := New(t.Context(), Params{Flags: conf.Flags{Config: path}, Getenv: os.Getenv, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return r, path
}

// What ssh refuses in any block is refused for all hosts, though only ssh can read it, and by the
// place that ssh itself names.
func TestTextIsChecked(t *testing.T) {
	for line, refused := range map[string]bool{
		"IPQoS af99":                         true,
		"LocalForward 80":                    true,
		"RekeyLimit 3":                       true,
		"LogLevel silent":                    false, // a word of some vendors
		"Ciphers aes999":                     true,
		"HostKeyAlgorithms +nonsense":        true,
		"GSSAPIClientIdentity x":             false, // that of a vendor, or refused as unknown
		"IPQoS = af21 cs1":                   false,
		"Protocol 2":                         false,
		"IgnoreUnknown New*\n  NewThing yes": false,
		"TCPKeepAlive yes # note":            false,
	} {
		r, path := routerOf(t, "Host other\n  TCPKeepAlive no\n  "+line+"\n  XAuthLocation /x\n")
		_, ssh := sshG(t, invocation{connection: conf.Flags{Config: path}, host: host.Host{Name: "web1"}})
		_, err := r.Route(t.Context(), host.Host{Name: "web1"})
		if (err != nil) != (ssh != nil) || refused && (err == nil || !strings.Contains(err.Error(), path+":3: ")) {
			t.Errorf("%s: %v; ssh says %v", line, err, ssh)
		}
	}
}

// Keywords that are kept as text are explained in the words of ssh, with the lines that say so.
func TestTextIsExplained(t *testing.T) {
	r, path := routerOf(t, "Host web*\n  LocalForward 8080 a:80\n  IPQoS=0x10\n  LocalForward 8081 b:81\n  EscapeChar ^X\n  EscapeChar none\n")
	config, err := r.Configuration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Asker.Explained(t.Context(), host.Endpoint{Name: "web1"})
	if err != nil {
		t.Fatal(err)
	}
	out, refusal := sshG(t, invocation{connection: conf.Flags{Config: path}, host: host.Host{Name: "web1"}})
	if refusal != nil {
		t.Fatal(refusal)
	}
	var places []string
	for k, v := range c.Settings() {
		if !k.Text() || v.Origin.Source == conf.FromDefault {
			continue
		}
		places = append(places, k.String()+strings.TrimPrefix(v.Origin.String(), path))
		if line := strings.ToLower(k.String()) + " " + strings.Join(v.Args, " ") + "\n"; !strings.Contains(out, line) {
			t.Errorf("ssh does not say %q", line)
		}
	}
	if want := "EscapeChar:5 IPQoS:3 LocalForward:2 LocalForward:4"; strings.Join(places, " ") != want {
		t.Errorf("got %q, want %s", places, want)
	}
}
