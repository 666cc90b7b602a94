package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// of returns a figure of three equal times, in ms.
func of(ms float64) stats.Interval {
	ns := ms * float64(time.Millisecond)
	return stats.Interval{Value: ns, Lo: ns, Hi: ns, N: 3}
}

// plain is a host with nothing wrong: what a login to an sshd next door takes.
func plain() *Facts {
	return &Facts{
		Destination: openssh.Destination{Label: "web1", Host: "web1"}, KnownAs: "web1", Route: "192.0.2.7 dev eth0 src 192.0.2.2 uid 0",
		Logins: Logins{
			Whole: of(90), RoundTrip: of(0.3), TCP: of(0.3), Version: of(20), Exchange: of(40), HostKey: of(1), Query: of(7), Signing: of(1), Entry: of(8), User: "ann", Address: "192.0.2.7", Lookup: of(2), Service: of(1), Request: of(7), Session: of(5), Exec: of(3),
			Command: of(5), Kex: "curve25519-sha256", Cipher: "aes128-gcm@openssh.com", ClientCPU: of(15), GSSAPI: of(0.8),
		},
		Sharing: Sharing{Session: of(20)},
		Server:  &Server{Client: "192.0.2.2", Shell: "/bin/bash", Reverse: of(1), Account: of(1), Settings: map[string]string{}, Modules: map[string][]string{}},
	}
}

// causes are one cause each, the check that finds it, and what it says.
var causes = []struct {
	check string
	plant func(*Facts)
	says  string
}{
	{"match-exec", func(f *Facts) {
		f.Logins.Commands = []Command{{Text: "slow", File: "/h/.ssh/config", Line: 3, Took: of(400)}}
	}, "sed -i.bak '3s/[Ee]xec/!originalhost web1 exec/' /h/.ssh/config"},
	{"dns", func(f *Facts) { f.Logins.Lookup = of(300) }, "HostName 192.0.2.7"},
	{"address", func(f *Facts) {
		f.Logins.Failed = []Attempt{{Address: "2001:db8::1", Why: "Connection timed out", Took: of(3000)}}
	}, "AddressFamily inet"},
	{"address", func(f *Facts) {
		f.Logins.Failed = []Attempt{{Address: "2001:db8::1", Why: "Connection timed out", Took: of(10004), Cut: true}, {Address: "2001:db8::2", Why: "Connection refused", Took: of(1)}}
	}, "2001:db8::1: no answer in 10004 ms, and this doctor waits no longer; ssh does, without a ConnectTimeout; 192.0.2.7 answered"},
	{"address", func(f *Facts) {
		f.Logins.Failed = []Attempt{{Address: "192.0.2.5", Why: "Connection timed out", Took: of(3000)}, {Address: "192.0.2.6", Why: "Connection timed out", Took: of(3000)}}
	}, "HostName 192.0.2.7"},
	{"gssapi", func(f *Facts) { f.Logins.GSSAPI = of(60) }, "GSSAPIAuthentication no"},
	{"keys", func(f *Facts) {
		f.Logins.Keys = Keys{Vain: []string{"a", "b"}, Took: of(30), Accepted: "me@box", Fingerprint: "SHA256:x", FromAgent: true}
	}, "IdentityFile ~/.ssh/web1.pub"},
	{"keys", func(f *Facts) {
		f.Refusal = &Refusal{Said: "Too many authentication failures", TooMany: true}
	}, "logins that work"},
	{"keys", func(f *Facts) {
		f.Identities, f.Destination.Port = []string{"/a", "/right"}, 22
		f.Logins.Keys = Keys{Vain: []string{"/a"}, Took: of(30), Accepted: "/right"}
	}, "accepted /right (sshd allows 6 tries by default)ssh -p 22 -i /right web1"},
	{"keys", func(f *Facts) {
		f.Identities = []string{"/a"}
		f.Logins.Keys = Keys{Vain: []string{"/a", "/b"}, Took: of(30), Accepted: "/right"}
	}, "IdentityFile /right"},
	{"keys", func(f *Facts) {
		f.Identities, f.Logins.Keys.Vain = []string{"/a", "/b"}, []string{"/a", "/b"}
		f.Refusal = &Refusal{Said: "Too many authentication failures", TooMany: true}
	}, "ssh web1 -i ~/.ssh/id_ed25519 -o IdentitiesOnly=yes"},
	{"refused", func(f *Facts) { f.Refusal = &Refusal{Said: "closed", Penalty: true} }, "PerSourcePenaltyExemptList 192.0.2.2"},
	{"refused", func(f *Facts) { f.Refusal = &Refusal{Said: "closed", Startup: true} }, "printf 'MaxStartups 100"},
	{"refused", func(f *Facts) { f.Refusal = &Refusal{Said: "closed"} }, "journalctl -t sshd"},
	{"stall", func(f *Facts) { f.Logins.Service = of(44) }, "r=$(ip route get 192.0.2.2 | sed"},
	{"stall", func(f *Facts) { f.Logins.Session = of(44) }, "ip route replace 192.0.2.7 dev eth0 src 192.0.2.2 quickack 1"},
	{"request", func(f *Facts) { f.Logins.Request, f.Server.Reverse = of(2000), of(1900) }, "UseDNS no"},
	{"request", func(f *Facts) { f.Logins.Request, f.Server.Account = of(2000), of(1900) }, "LDAP"},
	{"request", func(f *Facts) { f.Logins.Request, f.Server.Settings["usedns"] = of(6000), "yes" }, "(UseDNS), and its DNS is slow"},
	{"request", func(f *Facts) { f.Logins.Request, f.Server = of(6000), nil }, "looks up the client's name in the DNS (UseDNS) or the account"},
	{"request", func(f *Facts) {
		f.Logins.Request, f.Server.Reverse, f.Server.Settings["usedns"] = of(2000), of(1900), "no"
	}, "sshd -T | grep -i usedns; time getent hosts 192.0.2.2; time getent passwd ann"},
	{"proxy", func(f *Facts) {
		f.Logins.Proxy, f.Logins.TCP, f.Logins.Version = "sleep 1; nc web1 22", stats.Interval{}, of(1030)
	}, "timeout 20 sh -c 'sleep 1; nc web1 22'"},
	{"proxy", func(f *Facts) {
		f.Logins.Proxy, f.Logins.TCP, f.Logins.Version, f.Jumps = "ssh -W", stats.Interval{}, of(3000), []string{"gate"}
	}, "sshpace doctor gate"},
	{"connect", func(f *Facts) { f.Logins.TCP, f.Logins.RoundTrip = of(1003), of(1003) }, "its first packet is lost"},
	{"banner", func(f *Facts) { f.Logins.Version = of(1000) }, "TCP wrappers or a load balancer"},
	{"banner", func(f *Facts) {
		f.Logins.Version, f.Server.Wrapped, f.Server.Reverse = of(1000), true, of(900)
	}, "(TCP wrappers), and its DNS is slow"},
	{"kex", func(f *Facts) { f.Logins.Exchange = of(1000) }, "its half of the key exchange"},
	{"kex", func(f *Facts) {
		f.Logins, f.Server, f.Sharing = Logins{}, nil, Sharing{}
		f.Stuck = &Stuck{During: record.PhaseKex, After: 10 * time.Second, Got: alg.NewSuite("aes128-gcm@openssh.com", "", "mlkem768x25519-sha256"), Others: []string{"mlkem768x25519-sha256", "sntrup761x25519-sha512", "curve25519-sha256"}}
	}, "(MTU of a tunnel or VPN)no answer for 10s between the version lines and the end of the key exchange (mlkem768x25519-sha256)ssh -o KexAlgorithms=-mlkem768x25519-sha256,sntrup761x25519-sha512 -o Ciphers=aes128-gcm@openssh.com -o MACs=hmac-sha2-256 web1"},
	{"host-key", func(f *Facts) { f.Logins.HostKey = of(1000) }, "VerifyHostKeyDNS"},
	{"host-key", func(f *Facts) {
		f.Logins.HostKey, f.KnownAs = of(1000), "web1"
		f.Asks = []Setting{{conf.KnownHostsCommand, "/usr/bin/keys %H", "cfg:7"}}
	}, "the server's key: KnownHostsCommand /usr/bin/keys %H (cfg:7)"},
	{"host-key", func(f *Facts) {
		f.Logins.HostKey, f.Asks = of(1000), []Setting{{conf.KnownHostsCommand, "/usr/bin/keys %H", "cfg:7"}}
		f.KnownAs = "web1"
	}, "time '/usr/bin/keys' 'web1'"},
	{"host-key", func(f *Facts) {
		f.Logins.HostKey, f.Asks = of(1000), []Setting{{conf.VerifyHostKeyDNS, "yes", "cfg:8"}}
	}, "VerifyHostKeyDNS no"},
	{"host-key", func(f *Facts) { f.Logins.HostKey, f.KeyFiles = of(1000), []string{"/nfs/known_hosts"} }, "time cat /nfs/known_hosts"},
	{"authorized-keys", func(f *Facts) { f.Logins.Query, f.Logins.Entry = of(1200), of(1200) }, "about 2381 ms"},
	{"authorized-keys", func(f *Facts) {
		f.Logins.Query, f.Logins.Entry, f.Server.Settings["authorizedkeyscommand"] = of(1200), of(1200), "/usr/bin/sss_ssh_authorizedkeys"
	}, "the server runs AuthorizedKeysCommand to decide"},
	{"authorized-keys", func(f *Facts) {
		f.Logins.Query, f.Logins.Entry, f.Server.Settings["authorizedkeyscommand"] = of(1200), of(1200), "/usr/bin/sss_ssh_authorizedkeys; rm -r /"
	}, "c=$(sshd -T | sed -n 's/^authorizedkeyscommand //p')\ntime $(echo \"$c\" | sed 's/%u/ann/g; /^[^ ]*$/s/$/ ann/')"},
	{"authorized-keys", func(f *Facts) {
		f.Logins, f.Stuck = Logins{}, &Stuck{During: record.PhaseQuery, After: 30 * time.Second}
	}, "a login hangs: it waits for the server to decide whether it knows the key"},
	{"signature", func(f *Facts) { f.Logins.Signing = of(1200) }, "waits for a touch"},
	{"account", func(f *Facts) { f.Logins.Entry = of(2500) }, "grep -h ^account /etc/pam.d/sshd"},
	{"account", func(f *Facts) {
		f.Logins.Entry, f.Server.Modules["account"] = of(2500), []string{"pam_nologin.so", "pam_sss.so", "pam_permit.so"}
	}, "once the key is proven: probably PAM's account module pam_sss.so"},
	{"account", func(f *Facts) {
		f.Logins, f.Stuck = Logins{}, &Stuck{During: record.PhaseSign, Signed: true, After: 30 * time.Second}
	}, "waits for the server to let the account in"},
	{"session", func(f *Facts) {
		f.Logins.Session, f.Server.Modules["session"] = of(900), []string{"pam_unix.so", "pam_systemd.so", "pam_mount.so"}
	}, "one of pam_systemd.so, pam_mount.so"},
	{"shell", func(f *Facts) { f.Logins.Command, f.Server.Started, f.Server.Forced = of(500), of(4), true }, "forced command is slow"},
	{"shell", func(f *Facts) {
		f.Logins.Command, f.Server.Started, f.Server.RC = of(500), of(4), "/etc/ssh/sshrc"
	}, "runs /etc/ssh/sshrc before every command"},
	{"shell", func(f *Facts) {
		f.Logins.Command, f.Server.Started, f.Server.RC = of(500), of(4), "/home/ann/.ssh/rc"
	}, "ssh web1 'mv -i /home/ann/.ssh/rc /home/ann/.ssh/rc.sshpace'"},
	{"shell", func(f *Facts) { f.Logins.Command, f.Server.Started = of(500), of(4) }, "start-up files, ~/.ssh/rc, or a forced command"},
	{"shell", func(f *Facts) { // a busy host starts a shell slowly, too
		f.Logins.Command, f.Server.Started, f.Server.Forced, f.Server.Shell = of(500), of(200), true, "/bin/bash"
	}, "start-up files, ~/.ssh/rc, or a forced command"},
	{"shell", func(f *Facts) { f.Logins.Command, f.Server.Shell = of(500), "/bin/bash" }, "start-up files, ~/.ssh/rc, or a forced command"},
	{"no-shell", func(f *Facts) {
		f.NoCommands = &NoCommands{Status: 1, Said: "This account is currently not available."}
	}, `the server said "This account is currently not available."getent passwd ann`},
	{"no-shell", func(f *Facts) {
		f.NoCommands = &NoCommands{Status: 1, Said: "Password change required but no TTY available."}
	}, "its password has expired"},
	{"session", func(f *Facts) {
		f.Logins.Session, f.Server.Motd, f.Server.Greeted = of(900), []string{"/etc/update-motd.d/10-slow"}, of(700)
	}, "1 script in /etc/update-motd.d took 700 ms"},
	{"session", func(f *Facts) { // as Debian has it
		f.Logins.Session, f.Server.Motd, f.Server.Greeted = of(900), []string{"/etc/update-motd.d/10-uname"}, of(4)
	}, "PAM's session modules"},
	{"session", func(f *Facts) { f.Logins.Session = of(900) }, "PAM's session modules"},
	{"shell", func(f *Facts) { f.Logins.Command, f.Server.Started = of(500), of(480) }, "~/.bashrc"},
	{"master", func(f *Facts) { f.Master = &Master{Path: "/m", State: Hung, PID: 7} }, "kill -KILL 7; rm -f /m"},
	{"master", func(f *Facts) { f.Master = &Master{Path: "/m", State: Dead} }, "rm -f /m"},
	{"master", func(f *Facts) {
		f.Master = &Master{Path: "/m", State: Live, Old: []string{"1"}, New: []string{"1", "9"}}
	}, "group 9"},
	{"master", func(f *Facts) {
		f.Master = &Master{Path: "/m", State: Live, Keep: true, Age: 3 * time.Hour, Old: []string{"1"}, New: []string{"1", "9"}}
	}, "groups over it, opened 3h0m ago: 1; of a new login: 1 9"},
	{"master", func(f *Facts) {
		f.Master = &Master{Path: "/m", State: Live, Keep: true, Old: []string{"1"}, New: []string{"1", "9"}}
	}, "sshpace keep --refresh web1"},
	{"master", func(f *Facts) { f.Master = &Master{Path: "/m", Unset: true, Keep: true, State: Hung, PID: 7} }, "kill -KILL 7; rm -f /m"},
	{"sharing", func(f *Facts) { f.Logins.Whole = of(900) }, "ControlPersist 10m"},
	{"sharing", func(f *Facts) { f.Logins.Whole = of(900) }, "as long as you want: sshpace keep -w web1"},
	{"known-hosts", func(f *Facts) {
		f.KnownHosts = []KnownHosts{{File: "/k", Lines: 20000, Hashed: 20000, Extra: of(30)}}
	}, "ssh-keygen -F web1 -f /k"},
	{"exchange", func(f *Facts) {
		f.Logins.ClientCPU, f.Exchange = of(300), &Exchange{Instead: "mlkem768x25519-sha256", Safe: true, ClientCPU: of(20)}
	}, "KexAlgorithms ^mlkem768x25519-sha256"},
	{"exchange", func(f *Facts) {
		f.Logins.ClientCPU, f.Exchange = of(900), &Exchange{Instead: "curve25519-sha256", ClientCPU: of(20)}
	}, "ControlMaster auto"},
	{"compression", func(f *Facts) {
		f.Logins.Zipped = true
		f.Transfers = Transfers{Present: sent(2e7, 0), Plain: sent(1e8, 0)}
	}, "Compression no"},
	{"cipher", func(f *Facts) {
		f.Transfers = Transfers{Present: sent(2e7, 14), Other: sent(1e8, 3), Cipher: "chacha20-poly1305@openssh.com"}
	}, "Ciphers ^chacha20-poly1305@openssh.com"},
	{"window", func(f *Facts) {
		f.Transfers = Transfers{Present: sent(2e7, 0), Twice: sent(4e7, 0)}
		f.Logins.Service, f.Logins.Request, f.Logins.Session, f.Logins.Exec = of(100), of(104), of(103), of(102)
	}, "20.0 MB/s over a round trip of 100 ms, for which the window allows 21.0 MB/s"},
}

// sent is a transfer at a rate, with so many ns of ssh for a byte.
func sent(rate, cpu float64) Transfer {
	return Transfer{record.Evidence{BytesPerSecond: rate}, cpu}
}

// TestWindowOfABusyMachine: the round trip is the least of many, since a busy machine makes each of
// them long now and then; two connections get twice as much of its cores as one.
func TestWindowOfABusyMachine(t *testing.T) {
	for _, c := range []struct {
		service, exec float64 // ms
		one, two      float64 // the rates
		used, due     float64 // shares of ssh: computing, and waiting for a core
		want          int
	}{
		{50, 52, 40e6, 80e6, 0.05, 0.01, 1},
		{50, 80, 36e6, 60e6, 0.05, 0.3, 1},
		{0.3, 12, 120e6, 240e6, 0.15, 0.45, 0}, // loopback
		{3, 20, 75e6, 150e6, 0.15, 0.45, 0},
		{50, 52, 40e6, 44e6, 0.05, 0.01, 0},
		{50, 52, 4e6, 8e6, 0.01, 0.01, 0},
		{50, 52, 36e6, 60e6, 0.3, 0.6, 0},
	} {
		f := plain()
		l := &f.Logins
		l.Service, l.Request, l.Session, l.Exec = of(c.service), of(c.service+5), of(c.exec+1), of(c.exec)
		e := record.Evidence{BytesPerSecond: c.one, OwnCores: 2, BusyCores: 2, ClientShare: &c.used, ClientWaits: &c.due}
		f.Transfers = Transfers{Present: Transfer{e, 1}, Twice: sent(c.two, 1)}
		got := Judge(Named([]string{"window"}), f)
		if len(got) != c.want {
			t.Errorf("%+v: found %+v", c, got)
		}
		if hidden := f.Hidden() != ""; hidden != (c.want == 0 && c.service > 1) {
			t.Errorf("%+v: %s", c, f.Hidden())
		}
	}
}

// TestCauses: each cause is found by its check and no other, and a host without any has no finding.
func TestCauses(t *testing.T) {
	if found := Judge(Checks, plain()); len(found) != 0 {
		t.Errorf("nothing is wrong, but: %+v", found)
	}
	seen := map[string]bool{}
	for _, c := range causes {
		f := plain()
		c.plant(f)
		found := Judge(Checks, f)
		if len(found) != 1 || found[0].Check != c.check {
			t.Errorf("%s: found %+v", c.check, found)
			continue
		}
		if all := found[0].What + found[0].Evidence + found[0].Do + found[0].Gain + found[0].Where; !strings.Contains(all, c.says) {
			t.Errorf("%s does not say %q: %s", c.check, c.says, all)
		}
		seen[c.check] = true
	}
	for _, c := range Checks {
		if !seen[c.Name] {
			t.Errorf("no cause for %s", c.Name)
		}
	}
}

// TestLargeKnownHosts: what a long file costs is not promised again by a shared connection, and is
// not part of logins that did without it.
func TestLargeKnownHosts(t *testing.T) {
	f := plain()
	f.Logins.Whole = of(445)
	f.KnownHosts = []KnownHosts{{File: "/k", Lines: 48000, Hashed: 48000, Extra: of(374)}}
	found := Judge(Checks, f)
	if len(found) != 1 || found[0].Check != "known-hosts" || found[0].Gain != "about 374 ms of the 445 ms that a login takes (predicted)" {
		t.Errorf("found %+v", found)
	}
	f.Logins.HostKey, f.KeyFiles, f.Logins.Whole = of(1900), []string{"/k"}, of(1990) // of a busy machine: no slow file system
	if found := Judge(Checks, f); len(found) == 0 || found[0].Check != "known-hosts" || slices.ContainsFunc(found, func(f Finding) bool { return f.Check == "host-key" }) {
		t.Errorf("found %+v", found)
	}
	f.Logins.HostKey, f.KeyFiles = of(1), nil
	f.Own, f.Logins.Whole = true, of(125)
	if found := Judge(Checks, f); len(found) != 1 || found[0].Gain != "about 374 ms a login to any host (predicted)" {
		t.Errorf("found %+v", found)
	}
}

// TestFailedLogin: the last key that was offered in vain is not one that was accepted.
func TestFailedLogin(t *testing.T) {
	f := plain()
	f.Logins = Logins{Keys: Keys{Vain: []string{"a", "b"}, Took: of(30), Accepted: "c"}}
	if found := Judge(Checks, f); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

// TestProxyInBetween: where TCP ends before the host a round trip is no stall.
func TestProxyInBetween(t *testing.T) {
	f := plain()
	f.Logins.RoundTrip = of(0.05)
	f.Logins.Service, f.Logins.Request, f.Logins.Session, f.Logins.Exec, f.Logins.Command = of(61), of(67), of(66), of(62), of(66)
	if found := Judge(Checks, f); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

// TestStalls: both waits for acknowledgements are one finding, the last one, no fault, and none
// where they are a small part of a login.
func TestStalls(t *testing.T) {
	f := plain()
	f.Logins.Service, f.Logins.Session, f.Logins.Whole = of(44), of(45), of(180)
	found := Judge(Checks, f)
	if len(found) != 1 || found[0].Check != "stall" || Faults(found) || found[0].Gain != "about 88.4 ms of the 180 ms that a login takes (predicted)" || strings.Count(found[0].Do, "quickack 1") != 2 {
		t.Errorf("found %+v", found)
	}
	f.Logins.Command, f.Logins.Whole = of(110), of(290)
	if found := Judge(Checks, f); len(found) != 2 || found[1].Check != "stall" || !Faults(found) {
		t.Errorf("found %+v", found)
	}
	f.Logins.Command, f.Logins.Whole = of(2000), of(2180)
	if found := Judge(Checks, f); slices.ContainsFunc(found, func(f Finding) bool { return f.Check == "stall" }) {
		t.Errorf("found %+v", found)
	}
}

// TestConfigureKeepsCopy: what was in the file is in a copy, which the line that is printed brings
// back; a file that is not there is made, for nobody else to read.
func TestConfigureKeepsCopy(t *testing.T) {
	f := plain()
	f.Logins.GSSAPI = of(60)
	f.Config = filepath.Join(t.TempDir(), "it's new", "config")
	const old = "Host *\n  User ann\n\n\n"
	for _, before := range []string{"", old} {
		if before != "" {
			if err := os.WriteFile(f.Config, []byte(before), 0o640); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command("sh", "-c", Judge(Checks, f)[0].Do).CombinedOutput()
		after, _ := os.ReadFile(f.Config)
		if want := "Host web1\n  GSSAPIAuthentication no\nHost *\n" + before; err != nil || string(after) != want {
			t.Fatalf("%v: %s\n%q, want %q", err, out, after, want)
		}
		if info, err := os.Stat(f.Config); err != nil || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		undo, found := strings.CutPrefix(string(out), "undo: ")
		back, err := exec.Command("sh", "-c", undo).CombinedOutput()
		if now, _ := os.ReadFile(f.Config); !found || err != nil || string(now) != before {
			t.Errorf("%q: %v: %s\n%q, want %q", out, err, back, now, before)
		}
	}
}

// TestNoise: a cost that varies by more than itself, or that one login did without, is none.
func TestNoise(t *testing.T) {
	f := plain()
	f.Logins.Command = stats.Interval{Value: 200e6, Lo: 4e6, Hi: 250e6, N: 3}
	f.Logins.Lookup = stats.Interval{Value: 200e6, Lo: 190e6, Hi: 900e6, N: 3}
	if found := Judge(Checks, f); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

// TestOrder: what breaks logins stands first, then what costs most.
func TestOrder(t *testing.T) {
	f := plain()
	f.Logins.Lookup, f.Logins.Command = of(300), of(500)
	f.Master = &Master{Path: "/m", State: Hung}
	var order []string
	for _, found := range Judge(Checks, f) {
		order = append(order, found.Check)
	}
	if !slices.Equal(order, []string{"master", "shell", "dns"}) {
		t.Errorf("order %v", order)
	}
}

// TestTotalsAreNoFault: logins that take long as a whole are no fault, however long, and what is
// said of them stands below every cause.
func TestTotalsAreNoFault(t *testing.T) {
	f := plain()
	f.Logins.Whole = of(5000)
	if found := Judge(Checks, f); len(found) != 1 || found[0].Check != "sharing" || Faults(found) {
		t.Errorf("found %+v", found)
	}
	f.Logins.Service, f.Logins.Whole, f.Logins.Proxy, f.Logins.TCP, f.Logins.Version = of(44), of(1400), "sleep 0.6; nc web1 22", stats.Interval{}, of(620)
	var order []string
	for _, found := range Judge(Checks, f) {
		order = append(order, found.Check)
	}
	if !slices.Equal(order, []string{"proxy", "sharing"}) {
		t.Errorf("order %v", order)
	}
	f.Logins.Whole = of(700)
	f.Logins.Proxy, f.Logins.TCP, f.Logins.Version = "", of(0.3), of(20)
	order = nil
	for _, found := range Judge(Checks, f) {
		order = append(order, found.Check)
	}
	if !slices.Equal(order, []string{"stall", "sharing"}) {
		t.Errorf("order %v", order)
	}
}

// TestCutShort: what was not waited for takes longer than was seen, and is one finding.
func TestCutShort(t *testing.T) {
	f := plain()
	f.Logins.Whole = of(10750)
	f.Logins.Failed = []Attempt{{Address: "2001:db8::1", Why: "Connection timed out", Took: of(10004), Cut: true}}
	found := Judge(Checks, f)
	if len(found) == 0 || found[0].Check != "address" || !found[0].AtLeast || found[0].Gain != "more than 10004 ms a login (predicted)" || !f.Logins.Cut() {
		t.Errorf("found %+v", found)
	}
}

// TestPrivateServer: what only a host can have is not looked for on a private server, and settings
// are for all hosts.
func TestPrivateServer(t *testing.T) {
	f := plain()
	f.Own = true
	f.Logins.Service, f.Logins.Session, f.Logins.Command, f.Logins.Whole = of(44), of(900), of(500), of(2000)
	f.Logins.GSSAPI = of(60)
	found := Judge(Checks, f)
	if len(found) != 1 || found[0].Check != "gssapi" || !strings.Contains(found[0].Do, "'Host *' \\\n  '  GSSAPIAuthentication no'") {
		t.Errorf("found %+v", found)
	}
	f.Logins.GSSAPI, f.Logins.Whole = of(1), of(180)
	if found := Judge(Checks, f); len(found) != 1 || Faults(found) || found[0].Do != "sshpace doctor HOST" {
		t.Errorf("found %+v", found)
	}
}
