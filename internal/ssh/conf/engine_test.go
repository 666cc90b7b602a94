package conf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/sshtest"
)

func TestDecide(t *testing.T) {
	can := conf.Capabilities{Locally: true, Lists: map[conf.Keyword][]string{conf.Ciphers: {"aes128-ctr", "aes128-gcm@openssh.com"}, conf.KexAlgorithms: {"curve25519-sha256"}}}
	for text, want := range map[string]conf.Engine{
		"":                                       conf.Native,
		"GSSAPIAuthentication yes":               conf.Native,
		"ProxyCommand nc %h %p":                  conf.OpenSSH,
		"ProxyJump gate":                         conf.Native,
		"Ciphers aes256-ctr,aes128-ctr":          conf.Native,
		"SecurityKeyProvider none":               conf.Native,
		"PubkeyAuthentication unbound":           conf.Native,
		"LocalCommand x":                         conf.Native,
		"StrictHostKeyChecking no":               conf.Native,
		"Tunnel no":                              conf.Native,
		"Ciphers aes256-ctr":                     conf.OpenSSH,
		"KexAlgorithms ecdh-sha2-nistp256":       conf.OpenSSH,
		"PubkeyAuthentication no":                conf.OpenSSH,
		"PreferredAuthentications password":      conf.OpenSSH,
		"PKCS11Provider /x.so":                   conf.OpenSSH,
		"SecurityKeyProvider /x.so":              conf.OpenSSH,
		"HostbasedAuthentication yes":            conf.OpenSSH,
		"ProxyUseFdpass yes\nProxyCommand x":     conf.OpenSSH,
		"Tunnel yes":                             conf.OpenSSH,
		"KnownHostsCommand /x":                   conf.Native,
		"VerifyHostKeyDNS ask":                   conf.OpenSSH,
		"RevokedHostKeys /x":                     conf.OpenSSH,
		"CheckHostIP yes":                        conf.OpenSSH,
		"BindInterface lo":                       conf.OpenSSH,
		"PermitLocalCommand yes\nLocalCommand x": conf.Native,
		"CASignatureAlgorithms ssh-ed25519":      conf.OpenSSH,
	} {
		d := conf.Decide(resolveText(t, text, "a", nil), can)
		if d.Engine != want || (want == conf.OpenSSH) != (len(d.Reasons) > 0) {
			t.Errorf("%q: %v because of %v", text, d.Engine, d.Reasons)
		}
	}
}

// TestDecideLocalCommand checks that a permitted LocalCommand is left to ssh where nobody else runs
// it.
func TestDecideLocalCommand(t *testing.T) {
	for text, want := range map[string]conf.Engine{
		"LocalCommand x": conf.Native, "PermitLocalCommand yes": conf.Native, "PermitLocalCommand yes\nLocalCommand x": conf.OpenSSH,
	} {
		if d := conf.Decide(resolveText(t, text, "a", nil), conf.Capabilities{}); d.Engine != want {
			t.Errorf("%q: %v because of %v", text, d.Engine, d.Reasons)
		}
	}
}

func TestDecideNotesWhatDiffers(t *testing.T) {
	d := conf.Decide(resolveText(t, "ForwardAgent yes\nStrictHostKeyChecking off\nGSSAPIAuthentication yes\nLocalForward 1 a:2", "a", nil), conf.Capabilities{})
	var keywords []string
	for _, note := range d.Notes {
		keywords = append(keywords, note.Keyword.String())
	}
	slices.Sort(keywords)
	if want := []string{"ForwardAgent", "GSSAPIAuthentication", "LocalForward", "StrictHostKeyChecking"}; !slices.Equal(keywords, want) {
		t.Errorf("notes %v", d.Notes)
	}
	if !strings.Contains(d.Notes[0].String(), "config:1)") {
		t.Errorf("no place in %q", d.Notes[0])
	}
}

func TestAccessors(t *testing.T) {
	r := resolveText(t, `
HostName %h.example.org
Port 2222
User bob
IdentityFile ~/.ssh/%r@%h
IdentityFile none
CertificateFile %d/c-%p
IdentitiesOnly yes
IdentityAgent $FLEET
UserKnownHostsFile ~/k/%n /x
GlobalKnownHostsFile none
HostKeyAlias A
StrictHostKeyChecking accept-new
ProxyJump a,b@c:23
ConnectTimeout 5
ServerAliveInterval 1m
SendEnv L* FLEET
SetEnv LANG=C
RemoteCommand echo %k
`, "web", nil)
	identities, err := r.Paths(conf.IdentityFile)
	certificates, err2 := r.Paths(conf.CertificateFile)
	home := strings.TrimSuffix(identities[0], "/.ssh/bob@web.example.org")
	got := fmt.Sprintln(r.HostName(), r.Port(), r.User(), identities, certificates, err, err2, r.Yes(conf.IdentitiesOnly), r.IdentityAgent(),
		r.Files(conf.UserKnownHostsFile), r.Files(conf.GlobalKnownHostsFile), r.Word(conf.HostKeyAlias), r.StrictHostKeyChecking() == conf.AcceptNew,
		r.ProxyJump(), r.Duration(conf.ConnectTimeout), r.Duration(conf.ServerAliveInterval), r.Number(conf.ServerAliveCountMax),
		r.Environment([]string{"LANG=de", "LC_ALL=C", "FLEET=blue", "SECRET=x"}), r.Word(conf.RemoteCommand), r.Yes(conf.UpdateHostKeys))
	want := fmt.Sprintln("web.example.org", 2222, "bob", []string{home + "/.ssh/bob@web.example.org"}, []string{home + "/c-2222"},
		nil, nil, true, "blue", []string{home + "/k/web", "/x"}, []string{}, "a", true,
		[]host.Endpoint{{Name: "a"}, {User: "b", Name: "c", Port: 23}}, 5*time.Second, time.Minute, 3,
		[]string{"LC_ALL=C", "FLEET=blue", "LANG=C"}, "echo a", false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProxyCommandTokens(t *testing.T) {
	r := resolveText(t, "ProxyCommand nc %h %p %% %n %r\nHostName b\nUser u", "a", nil)
	if got, err := r.ProxyCommand(); got != "nc b 22 % a u" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	r = resolveText(t, "ProxyCommand nc %d", "a", nil)
	if got, err := r.ProxyCommand(); err == nil {
		t.Errorf("%%d is no token of ProxyCommand, got %q", got)
	}
}

// The answer of ssh -G, read back, says what was resolved.
func TestFromDump(t *testing.T) {
	for _, c := range corpus(t) {
		if c.refused {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			for name, text := range c.files {
				l.write(t, name, text)
			}
			path := l.write(t, "config", c.files["config"])
			call := parseCall(t, c.hosts[0])
			params := call.params
			params.Config, params.System, params.Defaults = path, l.system(t), defaults(t)
			config := mustLoad(t, params)
			out, stderr, err := l.ssh(t.Context(), append([]string{"-G"}, config.Arguments(call.query)...)...)
			if err != nil {
				t.Fatalf("%s", stderr)
			}
			read, err := config.FromDump(call.query, string(out))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sshtest.TableOfDump(string(out)), sshtest.TableOf(read)); diff != "" {
				t.Errorf("-ssh +read\n%s", diff)
			}
		})
	}
}

// Gaps are filled by the real ssh, for each host by itself; what it says of the rest keeps its
// place.
func TestAskerFillsGaps(t *testing.T) {
	l := newLab(t)
	system := l.system(t)
	system.Exec = nil
	path := l.write(t, "config", `
UserKnownHostsFile /k/%h
Host web*
  IdentityFile /web
Match exec "test $FLEET = blue"
  User blue
  ConnectTimeout 7
`)
	config := mustLoad(t, conf.Params{Flags: conf.Flags{Config: path}, System: system, Defaults: defaults(t)})
	var calls atomic.Int32
	asker := conf.NewAsker(config, func(ctx context.Context, args ...string) ([]byte, []byte, error) {
		calls.Add(1)
		return l.ssh(ctx, args...)
	})
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			name := fmt.Sprintf("web%d", i)
			if i%2 == 1 {
				name = fmt.Sprintf("db%d", i)
			}
			r, err := asker.Resolve(t.Context(), host.Endpoint{Name: name})
			if err != nil {
				t.Error(err)
				return
			}
			files, _ := r.Paths(conf.IdentityFile)
			if r.User() != "blue" || r.Duration(conf.ConnectTimeout) != 7*time.Second || r.HostName() != name || len(r.Gaps) > 0 ||
				r.Files(conf.UserKnownHostsFile)[0] != "/k/"+name || (files[0] == "/web") != (i%2 == 0) {
				t.Errorf("%s: %s %v %s %v %v %v", name, r.User(), r.Duration(conf.ConnectTimeout), r.HostName(), r.Gaps, r.Files(conf.UserKnownHostsFile), files)
			}
			if v, _ := r.Get(conf.User); v.Origin.Source != conf.FromSSH {
				t.Errorf("user comes from %v", v.Origin)
			}
			if v, _ := r.Get(conf.UserKnownHostsFile); v.Origin.Line != 2 {
				t.Errorf("files come from %v", v.Origin)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 40 {
		t.Errorf("%d calls for 40 hosts", calls.Load())
	}
}

// However many hosts need an answer of their own, few processes run at once.
func TestAskerLimitsProcesses(t *testing.T) {
	l, system := home(t)
	path := l.write(t, "config", "Match exec \"test %h\"\n")
	var running, most atomic.Int32
	asker := conf.NewAsker(mustLoad(t, conf.Params{Flags: conf.Flags{Config: path}, System: system}),
		func(ctx context.Context, args ...string) ([]byte, []byte, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			time.Sleep(time.Millisecond)
			return []byte("hostname x\nuser y\nport 1\n"), nil, nil
		})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := asker.Resolve(t.Context(), host.Endpoint{Name: fmt.Sprint("web", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() > 4 {
		t.Errorf("%d at once", most.Load())
	}
}

// An answer that speaks of the host itself is not passed on to others.
func TestAskerKeepsHostsApart(t *testing.T) {
	l := newLab(t)
	system := l.system(t)
	system.Exec = nil
	path := l.write(t, "config", "Match exec true\n  ControlPath /tmp/%h\nMatch exec \"test %h = web2\"\n  Port 23\n")
	asker := conf.NewAsker(mustLoad(t, conf.Params{Flags: conf.Flags{Config: path}, System: system, Defaults: defaults(t)}), l.ssh)
	for _, name := range []string{"web1", "web2"} {
		r, err := asker.Resolve(t.Context(), host.Endpoint{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if r.Word(conf.ControlPath) != "/tmp/"+name || (r.Port() == 23) != (name == "web2") {
			t.Errorf("%s: %s, port %d", name, r.Word(conf.ControlPath), r.Port())
		}
	}
}

// A ControlPath of none is kept apart from one that is not set, though ssh -G shows neither; where
// only ssh knows whether it counts, it does.
func TestAskerKeepsNoMaster(t *testing.T) {
	l := newLab(t)
	system := l.system(t)
	system.Exec = nil
	for text, want := range map[string]bool{
		"": true, "ControlPath none\n": false, "Host db\nControlPath none\n": false, "Host web\nControlPath /there\nHost *\nControlPath none\n": true,
	} {
		for _, hidden := range []string{"", "ControlPath none\n"} {
			path := l.write(t, "config", "Host *\nMatch exec true\nPort 23\n"+hidden+"Host *\n"+text)
			asker := conf.NewAsker(mustLoad(t, conf.Params{Flags: conf.Flags{Config: path}, System: system, Defaults: defaults(t)}), l.ssh)
			r, err := asker.Resolve(t.Context(), host.Endpoint{Name: "web"})
			if err != nil || r.Port() != 23 {
				t.Fatal(err, r)
			}
			if got := r.ControlPath("/kept"); (got != "") != (want && hidden == "") {
				t.Errorf("%q below %q: %q", text, hidden, got)
			}
		}
	}
}

func TestAskerPassesOnWhatSSHSays(t *testing.T) {
	l := newLab(t)
	path := l.write(t, "config", "NewThing yes\n")
	asker := conf.NewAsker(mustLoad(t, conf.Params{Flags: conf.Flags{Config: path}, System: l.system(t), Defaults: defaults(t)}), l.ssh)
	_, err := asker.Resolve(t.Context(), host.Endpoint{Name: "a"})
	if err == nil || !strings.Contains(err.Error(), "newthing") {
		t.Errorf("got %v", err)
	}
}

func TestArguments(t *testing.T) {
	c := mustLoad(t, conf.Params{Flags: conf.Flags{Config: "none", Settings: []string{"User=x", "Port 23"}, Port: 24, User: "u", Jump: "j",
		IPv4: true, Identities: []string{"/dev/null"}}})
	got := strings.Join(c.Arguments(host.Endpoint{Name: "h", User: "v", Port: 25}), " ")
	want := "-F none -l u -p 24 -J j -o User=x -o Port 23 -i /dev/null -4 -l v -p 25 -- h"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAskDefaultsReportsFailure(t *testing.T) {
	broken := errors.New("no such program")
	_, err := conf.AskDefaults(t.Context(), func(context.Context, ...string) ([]byte, []byte, error) { return nil, nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestJumpText(t *testing.T) {
	for text, want := range map[string]string{
		"gate": "gate", "bob@gate:23": "bob@gate:23", "[::1]:23": "[::1]:23", "ssh://b%20b@gate/": "b b@gate", "ssh://gate.:23": "gate:23", "gate.": "gate.",
	} {
		hops, err := conf.ParseJumps(text)
		if err != nil || hops[0].String() != want {
			t.Errorf("%q: %v, %v", text, hops, err)
		}
	}
	for _, bad := range []string{"", "a,", "@a", "a:x", "[::1", "[::1]x", "ssh://a/b", "ssh://[::1]", "ssh://a..b", "ssh://gw-%h"} {
		if hops, err := conf.ParseJumps(bad); err == nil {
			t.Errorf("%q gives %v", bad, hops)
		}
	}
}

// A hop in quotes is what the shell makes of it under ssh. One that is unsafe is refused for the
// hosts behind it, not for the whole file. On a command line ssh takes no quotes.
func TestJumpQuotesAndUnsafeNames(t *testing.T) {
	l, system := home(t)
	path := l.write(t, "config", "Host a\n ProxyJump \"jmp\",\"two\":23 # note\nHost b\n ProxyJump -oProxyCommand=x\nHost c\n ProxyJump x;y\nHost d\n ProxyJump \"p,q\"\nHost e\n ProxyJump 'jmp',ga'te',\"bob\"@'three':24\nHost f\n ProxyJump 'x;y'\n")
	c := mustLoad(t, conf.Params{Flags: conf.Flags{Config: path}, System: system})
	if got := fmt.Sprint(mustResolve(t, c, "e").ProxyJump()); got != "[jmp gate bob@three:24]" {
		t.Errorf("got %s", got)
	}
	flag := mustLoad(t, conf.Params{Flags: conf.Flags{Config: "none", Jump: "'jmp'"}, System: system})
	if _, err := flag.Resolve(t.Context(), host.Endpoint{Name: "a"}); !errors.Is(err, conf.ErrUnsafeHost) {
		t.Errorf("-J: %v", err)
	}
	if got := fmt.Sprint(mustResolve(t, c, "a").ProxyJump()); got != "[jmp two:23]" {
		t.Errorf("got %s", got)
	}
	mustResolve(t, c, "z")
	for _, name := range []string{"b", "c", "d", "f"} {
		if _, err := c.Resolve(t.Context(), host.Endpoint{Name: name}); !errors.Is(err, conf.ErrUnsafeHost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Tokens in ProxyJump stand for the host behind it: ssh makes a ProxyCommand of it
// (sshconnect.c:expand_proxy_command).
func TestJumpTokens(t *testing.T) {
	for text, want := range map[string]string{
		"gw-%h": "[gw-10.0.0.9]", "gw-%n:23": "[gw-web1:23]", "u-%r@gw": "[u-bob@gw]", "a-%k,b%%c,c-%p": "[a-alias b%c c-2222]",
		"gw-%u": "", "gw-%h;x": "", "%r@gate": "[bob@gate]",
	} {
		l, system := home(t)
		path := l.write(t, "config", "HostName 10.0.0.9\nUser bob\nPort 2222\nHostKeyAlias alias\nProxyJump "+text+"\n")
		r, err := mustLoad(t, conf.Params{Flags: conf.Flags{Config: path}, System: system}).Resolve(t.Context(), host.Endpoint{Name: "web1"})
		if err != nil && want != "" || err == nil && fmt.Sprint(r.ProxyJump()) != want {
			t.Errorf("%s: %v", text, err)
		}
		if err == nil && r.Word(conf.ProxyJump) != text {
			t.Errorf("ssh -G shows %s, ours %s", text, r.Word(conf.ProxyJump))
		}
	}
}

func TestSettingsAreInOrder(t *testing.T) {
	r := resolveText(t, "Port 23\nUser bob", "a", nil)
	var names bytes.Buffer
	last := conf.Keyword(0)
	for k := range r.Settings() {
		if k < last {
			t.Errorf("%s comes after %s", k, last)
		}
		last = k
		names.WriteString(k.String() + " ")
	}
	if !strings.Contains(names.String(), "Port ") || !r.IsSet(conf.Port) || r.IsSet(conf.BatchMode) {
		t.Errorf("settings %s", names.String())
	}
}

// What the installed ssh does not know either is refused once it was asked; what only ssh knows is
// a question, whatever IgnoreUnknown says; and so is nothing that ssh shows a value of.
func TestKeywordsOfOthers(t *testing.T) {
	l := newLab(t)
	path := l.write(t, "config", "Host b\n  NewThing yes\nHost *\nIgnoreUnknown Later,RequiredRSASize\nLater 3\nRequiredRSASize 2048\n")
	old := *defaults(t)
	old.Version = conf.Version{Major: 8, Minor: 7} // with RequiredRSASize of its vendor
	params := conf.Params{Flags: conf.Flags{Config: path}, System: l.system(t), Defaults: &old}
	knows := func(known ...string) conf.Runner {
		return func(_ context.Context, args ...string) ([]byte, []byte, error) {
			for _, arg := range args {
				name, _, _ := strings.Cut(strings.TrimSpace(arg), " ")
				if slices.Contains([]string{"NewThing", "Later"}, name) && !slices.Contains(known, name) {
					return l.ssh(t.Context(), args...)
				}
			}
			return nil, nil, nil
		}
	}
	for _, c := range []struct {
		known []string
		gaps  string
		err   string
	}{
		{err: path + ":2: Bad configuration option: newthing"},
		{known: []string{"NewThing"}, gaps: "[unknown keyword newthing (" + path + ":2)]"},
		{known: []string{"NewThing", "Later"}, gaps: "[unknown keyword newthing (" + path + ":2) unknown keyword later (" + path + ":5)]"},
	} {
		config := mustLoad(t, params)
		if err := config.CheckText(t.Context(), knows(c.known...)); err != nil {
			t.Fatal(err)
		}
		r, err := config.Resolve(t.Context(), host.Endpoint{Name: "a"})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v: %v", c.known, err)
			}
			continue
		}
		if err != nil || fmt.Sprint(r.Gaps) != c.gaps || r.Number(conf.RequiredRSASize) != 2048 {
			t.Errorf("%v: %v, %v, RequiredRSASize %d", c.known, err, r.Gaps, r.Number(conf.RequiredRSASize))
		}
	}
}
