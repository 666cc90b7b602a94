package conf_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
)

// home is a system whose files all lie below one directory, without an ssh.
func home(t *testing.T) (*lab, conf.System) {
	t.Helper()
	l := newLab(t)
	return l, conf.System{Home: l.home, User: "me", UID: os.Getuid(), Hostname: "box.example",
		ConfigDir: filepath.Join(l.home, ".ssh", "etc"), Getenv: l.getenv}
}

// A thousand hosts are each asked for a hundred keywords.
func TestWordsCostNoMemory(t *testing.T) {
	r := mustResolve(t, mustLoad(t, conf.Params{Flags: conf.Flags{Config: "none", Settings: []string{"Port=2222", "IdentityFile=/k"}}}), "a")
	for _, k := range []conf.Keyword{conf.Port, conf.IdentityFile, conf.ControlPath} {
		if n := testing.AllocsPerRun(10, func() { r.Word(k); r.Yes(k); r.IsSet(k) }); n != 0 {
			t.Errorf("%s: %v allocations", k, n)
		}
	}
}

func mustLoad(t *testing.T, params conf.Params) *conf.Config {
	t.Helper()
	c, err := conf.Load(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustResolve(t *testing.T, c *conf.Config, name string) *conf.Resolved {
	t.Helper()
	r, err := c.Resolve(t.Context(), host.Endpoint{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// resolveText resolves a host in a file without an installed ssh, so that everything the package
// knows is understood.
func resolveText(t *testing.T, text, name string, change func(*conf.Params)) *conf.Resolved {
	t.Helper()
	l, system := home(t)
	params := conf.Params{Flags: conf.Flags{Config: l.write(t, "config", text)}, System: system}
	if change != nil {
		change(&params)
	}
	return mustResolve(t, mustLoad(t, params), name)
}

func TestUsualFiles(t *testing.T) {
	l, system := home(t)
	user := l.write(t, "config", "Host a\n  Port 23\nInclude more\n")
	l.write(t, "more", "User bob\n")
	global := l.write(t, "etc/ssh_config", "Port 24\nInclude d/*\nCompression yes\n")
	l.write(t, "etc/d/x", "ConnectTimeout 7\n")
	c := mustLoad(t, conf.Params{System: system})
	a, b := mustResolve(t, c, "a"), mustResolve(t, c, "b")
	if a.Port() != 23 || b.Port() != 24 || a.User() != "bob" || b.Duration(conf.ConnectTimeout) != 7*time.Second || !b.Yes(conf.Compression) {
		t.Errorf("a: %d %s, b: %d %v %v", a.Port(), a.User(), b.Port(), b.Duration(conf.ConnectTimeout), b.Yes(conf.Compression))
	}
	origins := []string{origin(a, conf.Port), origin(b, conf.Port), origin(a, conf.Compression),
		origin(a, conf.AddressFamily), origin(a, conf.HostName)}
	want := []string{user + ":2", global + ":1", global + ":3", "default", "host argument"}
	if diff := cmp.Diff(want, origins); diff != "" {
		t.Error(diff)
	}
	none := mustResolve(t, mustLoad(t, conf.Params{System: system, Flags: conf.Flags{Config: "none"}}), "a")
	if none.Port() != 22 || none.User() != "me" {
		t.Errorf("-F none: port %d, user %s", none.Port(), none.User())
	}
}

func origin(r *conf.Resolved, k conf.Keyword) string {
	v, _ := r.Get(k)
	return v.Origin.String()
}

func TestMissingFiles(t *testing.T) {
	l, system := home(t)
	mustLoad(t, conf.Params{System: system})
	_, err := conf.Load(t.Context(), conf.Params{System: system, Flags: conf.Flags{Config: filepath.Join(l.home, "no")}})
	if _, ok := errors.AsType[*conf.ConfigError](err); !ok {
		t.Errorf("a missing -F file gives %v", err)
	}
}

// ssh refuses files that others could have written: the user's and all that are included, but not
// the one given with -F (readconf.c).
func TestPermissions(t *testing.T) {
	for _, tt := range []struct {
		name, chmod string
		mode        os.FileMode
		file        bool
		refused     bool
	}{
		{"group may write", "config", 0o620, false, true},
		{"all may write", "config", 0o602, false, true},
		{"all may read", "config", 0o644, false, false},
		{"included file", "more", 0o660, false, true},
		{"file given by flag", "config", 0o666, true, false},
		{"included by a file given by flag", "more", 0o666, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, system := home(t)
			config := l.write(t, "config", "Include more\n")
			l.write(t, "more", "Port 23\n")
			if err := os.Chmod(filepath.Join(l.home, ".ssh", tt.chmod), tt.mode); err != nil {
				t.Fatal(err)
			}
			params := conf.Params{System: system}
			if tt.file {
				params.Config = config
			}
			_, err := conf.Load(t.Context(), params)
			if errors.Is(err, conf.ErrPermissions) != tt.refused {
				t.Errorf("refused=%v, got %v", tt.refused, err)
			}
		})
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	l, system := home(t)
	path := l.write(t, "config", "Host a\n\n  Port none\n")
	_, err := conf.Load(t.Context(), conf.Params{System: system})
	if err == nil || !strings.HasPrefix(err.Error(), path+":3: Port: ") {
		t.Errorf("got %v", err)
	}
}

func TestHostNames(t *testing.T) {
	l, system := home(t)
	l.write(t, "config", "Host b a\nHost *.x !c d b e?\nMatch host m\nInclude more\n")
	l.write(t, "more", "Host f\n")
	got := mustLoad(t, conf.Params{System: system}).HostNames()
	if want := []string{"b", "a", "d", "f"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What releases after 9.2 brought; without an installed ssh all of it counts.
func TestNewerKeywords(t *testing.T) {
	addresses := func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.1.2.3")} }
	for name, text := range map[string]string{
		"tagged":            "Tag blue\nMatch tagged b*\n Port 23",
		"not tagged":        "Match !tagged blue\n Port 23",
		"no tag":            "Match tagged *\n Port 22\nMatch !tagged \"x\" tagged \"\"\n Port 23",
		"some command":      "Match command \"\"\n Port 22\nMatch command u*\n Port 23",
		"localnetwork":      "Match localnetwork 192.0.2.0/24,10.0.0.0/8\n Port 23",
		"not localnetwork":  "Match !localnetwork 172.16.0.0/12 localnetwork 10.0.0.0/8\n Port 23",
		"command":           "Match command uptime\n Port 23",
		"sessiontype":       "Match sessiontype exec\n Port 23",
		"equals":            "Match host=a,b user=me\n Port 23",
		"single quotes":     "Match host 'a' user \"me\"\n Port 23",
		"include by env":    "Include ${FLEET}",
		"include by token":  "Include %u-%L",
		"user by token":     "User x-%u\nMatch final user x-%u\n Port 23",
		"hidden in unknown": "ObscureKeystrokeTiming no\nChannelTimeout session=5m\nPort 23",
	} {
		t.Run(name, func(t *testing.T) {
			r := resolveText(t, text, "a", func(p *conf.Params) {
				p.Command, p.System.Addresses = "uptime", addresses
				for _, file := range []string{"blue", "me-box"} {
					path := filepath.Join(p.System.Home, ".ssh", file)
					if err := os.WriteFile(path, []byte("Port 23\n"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			})
			if r.Port() != 23 || len(r.Gaps) > 0 {
				t.Errorf("port %d, gaps %v", r.Port(), r.Gaps)
			}
		})
	}
}

// Match command "" is about a login without one.
func TestMatchNoCommand(t *testing.T) {
	for text, want := range map[string]int{"Match command \"\"\n Port 23": 23, "Match command *\n Port 23": 22} {
		if got := resolveText(t, text, "a", nil).Port(); got != want {
			t.Errorf("%q: port %d, want %d", text, got, want)
		}
	}
}

// A jump host's quotes are the shell's, which ssh does not ask about %j.
func TestQuotedJumpInTokens(t *testing.T) {
	for text, want := range map[string]string{`"one"`: `/x/"one"`, `one`: "/x/one", `u@"two":23`: `/x/"two"`, `[::1]:23`: "/x/::1"} {
		if got := resolveText(t, "ProxyJump "+text+"\nControlPath /x/%j\n", "a", nil).Word(conf.ControlPath); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// An old ssh would refuse what a new one takes: that is for ssh to say.
func TestOlderRelease(t *testing.T) {
	l, system := home(t)
	old, err := conf.AskDefaults(t.Context(), func(ctx context.Context, args ...string) ([]byte, []byte, error) {
		if args[0] == "-V" {
			return nil, []byte("OpenSSH_9.2p1 Debian-2, OpenSSL 3.0"), nil
		}
		return l.ssh(ctx, args...)
	})
	if err != nil {
		t.Fatal(err)
	}
	params := conf.Params{System: system, Defaults: old, Flags: conf.Flags{Config: l.write(t, "config", "Tag blue\n")}}
	if r := mustResolve(t, mustLoad(t, params), "a"); len(r.Gaps) != 1 || r.Gaps[0].Reason != "unknown keyword tag" {
		t.Errorf("gaps %v", r.Gaps)
	}
	l.write(t, "config", "Match tagged blue\n")
	if _, err := conf.Load(t.Context(), params); err == nil {
		t.Error("Match tagged is not known to 9.2")
	}
}

func TestGaps(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		gaps int
	}{
		"exec":                        {"Match exec true\n Port 23", 1},
		"exec about the host":         {"Match exec \"test %h = a\"\n Port 23", 1},
		"exec that cannot matter":     {"Match exec true host b\n Port 23", 0},
		"exec behind a false one":     {"Match host b exec true\n Port 23", 0},
		"localnetwork":                {"Match localnetwork 10.0.0.0/8\n Port 23", 1},
		"version":                     {"Match version OpenSSH_9*\n Port 23", 1},
		"unknown keyword":             {"Host b\n NewThing yes", 1},
		"ignored":                     {"IgnoreUnknown New*\nNewThing yes", 0},
		"canonical":                   {"CanonicalizeHostname yes\nCanonicalDomains x.org", 1},
		"canonical, but many dots":    {"CanonicalizeHostname yes\nCanonicalDomains x.org\nHostName a.b.c", 0},
		"cname":                       {"CanonicalizePermittedCNAMEs *:*", 1},
		"algorithms without defaults": {"Ciphers +aes128-cbc", 1},
		"include about the host":      {"Include %h", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := resolveText(t, tt.text, "a", nil)
			if len(r.Gaps) != tt.gaps {
				t.Errorf("gaps %v", r.Gaps)
			}
		})
	}
}

// The DNS of these cases knows db.example.org, and www.example.org as an alias of web7.example.net.
func TestCanonicalNames(t *testing.T) {
	dns := map[string]string{
		"db.example.org.":  "db.example.org.",
		"www.example.org.": "web7.example.net.",
		"alias":            "web7.example.net",
	}
	const rules = "CanonicalizePermittedCNAMEs *.example.org,alias:*.example.net\n"
	const yes = "CanonicalizeHostname yes\nCanonicalDomains other.org example.org\n"
	for _, tt := range []struct{ name, text, host, want string }{
		{"completed", yes, "db", "db.example.org"},
		{"not found", yes, "nothing", "nothing"},
		{"alias not permitted", yes, "www", "www.example.org"},
		{"alias", yes + rules, "www", "web7.example.net"},
		{"anchored", yes, "db.example.org.", "db.example.org"},
		{"too many dots", yes + "CanonicalizeMaxDots 0", "a.b", "a.b"},
		{"alias without completion", rules, "alias", "alias"},
		{"alias without success", yes + rules, "alias", "web7.example.net"},
		{"through a proxy", yes + "ProxyJump gate", "db", "db"},
		{"through no proxy", "ProxyJump none\n" + yes, "db", "db.example.org"},
		{"through a proxy, always", "CanonicalizeHostname always\nCanonicalDomains example.org\nProxyJump gate", "db", "db.example.org"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := resolveText(t, tt.text+"\nMatch canonical host *.example.*\n Port 23", tt.host, func(p *conf.Params) {
				p.System.Canonical = func(_ context.Context, _, name string) (string, bool) {
					canonical, ok := dns[name]
					return canonical, ok
				}
			})
			if jump := strings.Contains(tt.text, "ProxyJump none"); r.HostName() != tt.want || (len(r.Gaps) > 0) != jump { // releases differ
				t.Errorf("got %s, gaps %v", r.HostName(), r.Gaps)
			}
			if second := strings.Contains(tt.want, ".example."); (r.Port() == 23) != second {
				t.Errorf("port %d", r.Port())
			}
		})
	}
}

func TestWarnsOfMissingIdentity(t *testing.T) {
	_, system := home(t)
	c := mustLoad(t, conf.Params{System: system, Flags: conf.Flags{Identities: []string{"~/no", "/dev/null"}}})
	files, err := mustResolve(t, c, "a").Paths(conf.IdentityFile)
	if err != nil || !slices.Equal(files, []string{"/dev/null"}) || len(c.Warnings()) != 1 {
		t.Errorf("files %q, %v, warnings %q", files, err, c.Warnings())
	}
}

func TestUnsafeNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"web1": true, "::1": true, "fe80::1%eth0": true, "a/b": true, "ü": true,
		"": false, "-oProxyCommand=x": false, "a b": false, "a\nb": false, "$(x)": false, "a`b": false, "a'b": false,
		"a;b": false, "a&b": false, "a|b": false, "a\\b": false, "a{b}": false, "a\x7f": false, "a,b": false,
	} {
		if err := conf.CheckHost(name); (err == nil) != ok {
			t.Errorf("CheckHost(%q) = %v", name, err)
		}
	}
	for name, ok := range map[string]bool{
		"": true, "bob": true, `DOMAIN\bob`: true, "bob smith": true, "bob@corp": true,
		"-bob": false, `bob\`: false, "a -b": false, "a;b": false, "$x": false, "a\nb": false, "`a`": false,
	} {
		if err := conf.CheckUser(name); (err == nil) != ok {
			t.Errorf("CheckUser(%q) = %v", name, err)
		}
	}
	c := mustLoad(t, conf.Params{Flags: conf.Flags{Config: "none"}})
	if _, err := c.Resolve(t.Context(), host.Endpoint{Name: "-x"}); !errors.Is(err, conf.ErrUnsafeHost) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Resolve(t.Context(), host.Endpoint{Name: "a", User: "x;y"}); !errors.Is(err, conf.ErrUnsafeUser) {
		t.Errorf("got %v", err)
	}
}

// An unsafe user on the command line is refused before any file is read, whatever ssh is installed:
// here there is no such file.
func TestUnsafeUserComesFirst(t *testing.T) {
	for _, version := range []conf.Version{{}, {9, 2}, {9, 5}, {10, 5}} {
		for _, flags := range []conf.Flags{
			{Settings: []string{"User=a;b"}}, {User: "a;b"}, {Settings: []string{"Port=22", "user \"x -y\"", "User=bob"}}, {User: "-x", Settings: []string{"User=bob"}},
		} {
			flags.Config = "/nonexistent/config"
			p := conf.Params{Flags: flags, Defaults: &conf.Defaults{Version: version}}
			if _, err := conf.Load(t.Context(), p); !errors.Is(err, conf.ErrUnsafeUser) {
				t.Errorf("%v: %+v: %v", version, p, err)
			}
			if err := p.CheckUser(); !errors.Is(err, conf.ErrUnsafeUser) {
				t.Errorf("%+v: %v", p, err)
			}
		}
	}
	mustLoad(t, conf.Params{Flags: conf.Flags{Config: "none", Settings: []string{"User=bob", "User=a;b"}}}) // ssh takes the first
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]conf.Version{
		"OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0": {Major: 9, Minor: 2},
		"OpenSSH_10.5, LibreSSL 4":                    {Major: 10, Minor: 5},
		"OpenSSH_for_Windows_9.5p1":                   {},
		"OpenSSH_":                                    {},
	} {
		if got, ok := conf.ParseVersion(text); got != want || ok != (want != conf.Version{}) {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

// TestControlPath: a master for which ssh_config has no place gets one in a directory, unless there
// is to be none.
func TestControlPath(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "/kept/HASH",
		"ControlPath /there/%C": "/there/HASH",
		"ControlPath none":      "",
		"Host web\n ControlPath NONE\nHost *\nControlPath /late": "",
		"RefuseConnection closed":                                "",
		"ProxyCommand connect %h":                                "",
		"ProxyCommand connect %h\nControlPath /there/%C":         "/there/HASH",
	} {
		r := resolveText(t, text, "web", nil)
		hash := r.ControlPath("/x")
		if text != "" {
			hash = resolveText(t, "", "web", nil).ControlPath("/x")
		}
		want = strings.Replace(want, "HASH", filepath.Base(hash), 1)
		if got := r.ControlPath("/kept"); got != want || len(filepath.Base(hash)) != 40 {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := r.ControlPath(""); want == "/kept/"+filepath.Base(hash) && got != "" {
			t.Errorf("%q without a directory: %q", text, got)
		}
	}
}

// TestControlPathOfReleases: the place of a master does not depend on whether, and which, ssh was
// asked; its jump host does.
func TestControlPathOfReleases(t *testing.T) {
	paths := map[string]bool{}
	for _, text := range []string{"ProxyJump gate", "ProxyJump other"} {
		for _, d := range []*conf.Defaults{nil, {Version: conf.Version{Major: 9, Minor: 2}}, {Version: conf.Version{Major: 10, Minor: 5}}} {
			paths[resolveText(t, text, "web", func(p *conf.Params) { p.Defaults = d }).ControlPath("/kept")] = true
		}
	}
	if len(paths) != 2 {
		t.Errorf("%v", paths)
	}
}
