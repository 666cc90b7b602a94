package route

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/sshtest"
)

// configs is what the random configurations are made of.
var configs = sshtest.Grammar{
	"name":     {"one", "web1", "web2", "db.a.test", "only", "10.0.0.7", "::1", "gone.a.test", "plain.b.test", "WEB1", "127.1", "mail"},
	"pattern":  {"<name>", "<name>", "web*", "web?", "*", "!<name>", "*.test", "*.a.test", "!*.b.test", `"<name>"`, "w*1", "10.*", "o?e", "!web2 *", "One"},
	"header":   {"Host <pattern>", "Host <pattern> <pattern>", "Host <pattern> <pattern> <pattern>", "Match <criteria>", "Match <criteria>", "Host !<name> *", `Host "<name>" '<name>' we\b1`, "Host <name>,<name>", "Host * !<name> !<pattern>"},
	"criteria": {"<criterion>", "<criterion>", "<criterion> <criterion>", "<criterion> <criterion> <criterion>", "all", "final all", "canonical all", "!canonical <criterion>"},
	"not":      {"", "", "", "!"},
	"criterion": {"<not>host <list>", "<not>host <list>", "host=<list>", `host "<list>"`, "<not>originalhost <list>", "<not>user <people>", "<not>localuser <people>",
		`<not>exec "<program>"`, "final", "canonical", "<not>final", "<not>canonical", "Host <list>", "<newer>", "<newer>", `HOST "<list>"`, "user=<people>", "originalhost=<list>", `<not>exec "test <token> = <token>"`, "localuser=<people>"},
	"newer":    {"host <list>"},
	"list":     {"<name>", "<name>,<name>", "web*,!web2", "*.test", "*,!*.a.test", "!web1,web*", "mail,o*", "WEB1"},
	"people":   {"root", "bob", "b*", "!bob,*", "bob,alice", "nobody"},
	"program":  {"true", "false", "test %h = web1", "test %n = web1", "test %r = bob", "test %p = 22", "expr %h : .*test", "test -n '%L'", "test %u = root", "test -z %C"},
	"include":  {"Include ~/inc/a*", "Include rel", "Include re? ~/inc/b", "Include DIR/.ssh/[pqr]*", "Include ~/inc/* rel", "Include DIR/[!t]ne", "Include DIR/one", "Include DIR/two", `Include "DIR/one" DIR/two`, "Include DIR/t*", "Include DIR/none", "Include=DIR/one"},
	"token":    {"%h", "%n", "%p", "%r", "%u", "%%", "%k", "%L", "%l", "%i", "%C", "%d", "x", "%j"},
	"path":     {"~/.ssh/<token>", "'/single quotes/<token>'", `/with\ blank`, `"/a # b"/<token>`, "~nobody/x", "~", "${FLEET}${FLEET}", "/x/<token><token><token>", "$FLEET/x", "/k/<token>-<token>", "DIR/<token>", "~/key", "~root/key", "none", `"/with blank/<token>"`, "${FLEET}/x", "key", "/k/${FLEET}-<token>"},
	"yes":      {"yes", "no", "Yes", "true", "false", `"yes"`, "NO"},
	"number":   {"1", "2", "3", "22", "2048", " 5", "007", "+4", "0"},
	"time":     {"0", "5", "1m", "1h30m", "none", "90s", "2W", "1m30", "<fraction>", "1d12h", "1S"},
	"fraction": {"5"},
	"sign":     {"+", "-", "^", "", ""},
	"kex":      {"curve25519-sha256", "diffie-hellman-group14-sha256", "ecdh-sha2-*", "diffie-hellman-group1-sha1", "curve25519*,ecdh-sha2-nistp256", "*sha1", "curve25519-sha256,,ecdh-sha2-nistp256", "sntrup*,curve*", "diffie-hellman-group-exchange-sha256"},
	"cipher":   {"aes128-ctr", "aes*-ctr", "3des-cbc", "aes128-cbc,aes256-cbc", "chacha20-poly1305@openssh.com,aes128-gcm@openssh.com", "*cbc", "*"},
	"mac":      {"hmac-sha1", "hmac-sha2-*", "*-etm@openssh.com", "umac-64@openssh.com,hmac-md5", "hmac-sha2-256"},
	"key":      {"ssh-rsa", "ssh-ed25519", "ssh-ed25519,rsa-sha2-512", "*-cert-v01@openssh.com", "ecdsa*", "rsa-sha2-*", "ssh-dss", "sk-*", "ssh-ed25519-cert-v01@openssh.com", "ssh-ed25519,ssh-ed25519", "RSA", "*", "rsa-sha2-512,,ssh-rsa", "e*,r*"},
	"jump":     {"<name>", "bob@<name>", "<name>:2200", "bob@<name>:2201", "<name>,<name>", "none", `"<name>"`, "ssh://bob@mail:44", "[::1]:22", "gate,bob@mail", "bob@gate:2200,alice@web1:22,<name>", "[10.0.0.7]:22", "10.0.0.7", "bob@[::1]:23,gate", "ssh://gate", "NONE", "<name>  # note", "bob@gate.a.test:ssh", "user@domain@gate", "gw-%h", "bob@gw-%n:23,x%%y", "u-%r@gate-%p", "none", "'<name>'", "'gate','mail':24", "ssh://mail.", "ssh://bob@gate.a.test.:2203/", "ga'te'"},
	"hostname": {"<name>", "%h", "%h.a.test", "%h.b.test", "x-%h", "127.0.0.9", "0x7f.1", "::1", `"%h.test"`, "Only.A.test", "%%h", "fe80::1%%lo", "2001:DB8::0:1", "::ffff:10.0.0.1", "010.1", "%h", "a_b.test", "<name>.", "xn--bcher-kva.test"},
	"canonical": {"CanonicalizeHostname <canon>", "CanonicalizeHostname <canon>", "CanonicalDomains a.test b.test", "CanonicalDomains b.test", "CanonicalDomains none", "CanonicalizeMaxDots <number>",
		"CanonicalizeFallbackLocal <yes>", "CanonicalizePermittedCNAMEs *:*", "CanonicalizePermittedCNAMEs *.a.test:*.b.test", "CanonicalizePermittedCNAMEs one.*:three.test none.test:x", "CanonicalizePermittedCNAMEs none", "CanonicalizePermittedCNAMEs *.a.test,*.b.test:*", "CanonicalizePermittedCNAMEs one.a.test:*.test *:nothing", "CanonicalDomains A.Test. b.test", "CanonicalizeMaxDots 0"},
	"canon": {"yes", "always", "no", "yes"},
	"set": {
		"HostName <hostname>", "HostName <hostname>", "Port <port>", "Port <port>", "User <user>", "User <user>", "IdentityFile <path>", "IdentityFile <path>", "CertificateFile <path>",
		"UserKnownHostsFile <path>", "UserKnownHostsFile <path> <path>", "GlobalKnownHostsFile <path>", "IdentityAgent <path>", "IdentityAgent $FLEET", "IdentityAgent SSH_AUTH_SOCK", "ControlPath <path>",
		"ProxyJump <jump>", "ProxyJump <jump>", "ProxyCommand nc <token> %h %p", "ProxyCommand none", "ProxyCommand=ssh -W %h:%p gate # x", `ProxyCommand "nc %h %p"`,
		"KexAlgorithms <sign><kex>", "Ciphers <sign><cipher>", "MACs <sign><mac>", "HostKeyAlgorithms <sign><key>", "PubkeyAcceptedAlgorithms <sign><key>", "CASignatureAlgorithms <sign><key>",
		"PubkeyAcceptedKeyTypes <sign><key>", "HostbasedAcceptedAlgorithms <sign><key>", `Ciphers "<sign><cipher>"`,
		"<switch> <yes>", "<switch> <yes>", "<switch> <yes>", "<counter> <number>", "<wait> <time>", "AddressFamily <family>", "BindAddress 127.0.0.<number>", "BindInterface lo",
		"StrictHostKeyChecking <strict>", "UpdateHostKeys <ask>", "VerifyHostKeyDNS <ask>", "HostKeyAlias <alias>", "LogLevel <level>", "RequestTTY <tty>", "RemoteCommand echo <token> # not a comment",
		"SendEnv LANG LC_*", "SendEnv -LC_*", "SendEnv A B -A", "SetEnv A=1 B=2", "SetEnv A=<number> A=4", `SetEnv "X=a b" Y=c`, "RekeyLimit 1G 1h", "RekeyLimit default none", "RekeyLimit 16K",
		"ForwardAgent <forward>", "AddKeysToAgent <agent>", "PreferredAuthentications publickey,password", "ControlMaster <master>", "ControlPersist <persist>", "Compression <plain>", "EscapeChar <escape>",
		"LocalForward 8080 a:80", "RemoteForward 9 b:9", "DynamicForward 1080", "Tunnel <tunnel>", "KnownHostsCommand /bin/echo %H %I <token>", "LocalCommand echo %h <token>", "RevokedHostKeys <path>",
		"FingerprintHash <digest>", "SessionType <session>", "IPQoS af21 cs1", "PKCS11Provider none", "SecurityKeyProvider internal", "NumberOfPasswordPrompts <number>", "KbdInteractiveDevices bsdauth",
		"<canonical>", "<canonical>", "<canonical>", "<canonical>", "IgnoreUnknown Bar*", "Barrel 3", "Protocol 2", "ChallengeResponseAuthentication <yes>", "<include>", "<include>", "<added>", "<added>", "<rare>", "<rare>", "IdentityFile <path>", "ProxyJump <jump>",
	},
	"rare": {
		"LocalForward <listen> <target>", "LocalForward <listen> <target>", "RemoteForward <listen> <target>", "RemoteForward <listen> /tmp/other", "RemoteForward <listen>", "DynamicForward <listen>", "IPQoS <qos>", "IPQoS <qos> <qos>",
		"TunnelDevice <tun>", "TunnelDevice <tun>:<tun>", "StreamLocalBindMask <mask>", "StreamLocalBindUnlink <yes>", "SyslogFacility <facility>", "LogVerbose kex.c:*:1000,*:main():* x", "LogVerbose none",
		"PermitRemoteOpen a:80 [::1]:* b:ssh", "PermitRemoteOpen any", "PermitRemoteOpen none", "XAuthLocation /x/y", "EnableSSHKeysign <yes>", "ForkAfterAuthentication <yes>", "EnableEscapeCommandline <yes>",
		"ForwardX11Trusted <yes>", "KbdInteractiveDevices pam,bsdauth", "KerberosAuthentication yes", "UsePrivilegedPort no", "RSAAuthentication yes", "Cipher 3des", "CompressionLevel 9", "TCPKeepAlive <yes>", "KeepAlive <yes>",
		"DSAAuthentication <yes>", "SkeyAuthentication <yes>", "IdentityFile2 <path>", "HostbasedKeyTypes <sign><key>", "LocalCommand none", "RemoteCommand none", "KnownHostsCommand none", "PKCS11Provider <path>", "SecurityKeyProvider <path>",
		"RekeyLimit <size> <time>", "RekeyLimit <size>", "GSSAPIAuthentication <yes>", "GSSAPIDelegateCredentials <yes>", "AddKeysToAgent <time>", "AddKeysToAgent confirm <time>", "ControlPersist <time>", "CheckHostIP <yes>",
		`SetEnv "A=1 2" 'B=x y' C=`, `SendEnv "L*" X?`, "SendEnv -*", "UserKnownHostsFile /a /b /c <path>", "UserKnownHostsFile none", "GlobalKnownHostsFile none", "GlobalKnownHostsFile <path> <path>", "NumberOfPasswordPrompts <number>",
		"Hostname <hostname>", "RemoteCommand sh -c 'echo %h' \"x\" # y", "ProxyCommand exec ssh -q -W [%h]:%p %r@gate", "ProxyCommand None", "IgnoreUnknown Foo*,Bar*", "Foolish \"x", "EscapeChar <escape>", "PubkeyAuthentication <pubkey>",
		"StrictHostKeyChecking <strict> ", "RequestTTY <tty>", "SessionType <session>", "LogLevel <level>", "GSSAPIKeyExchange <yes>", "VerifyHostKeyDNS <ask>",
	},
	"pubkey": {"yes", "no", "unbound", "host-bound"},
	"listen": {"8080", "127.0.0.1:8081", "[::1]:8082", "*:8083", ":8084", "/tmp/sock", "${FLEET}/s", "ssh", "0", "localhost:http"},
	"target": {"a:80", "[::1]:81", "10.0.0.1:ssh", "b.test:443"},
	"qos":    {"af21", "EF", "none", "cs1", "le", "lowdelay", "throughput", "0x10", "184", "4", "0", "Reliability"}, "tun": {"any", "0", "7", "ANY"}, "mask": {"0177", "077", "7", "0"},
	"facility": {"DAEMON", "user", "AUTHPRIV", "local7"}, "size": {"1G", "default", "500M", "16k", "1.5G", "0", "1099511627776"},
	"added":   {"Port <port>"},
	"port":    {"22", "2222", "ssh", "65535", "1"},
	"user":    {"bob", "alice", "nobody", `"bob"`, "x_y"},
	"switch":  {"BatchMode", "IdentitiesOnly", "HashKnownHosts", "CheckHostIP", "PasswordAuthentication", "TCPKeepAlive", "PermitLocalCommand", "ProxyUseFdpass", "ExitOnForwardFailure", "ForwardX11", "VisualHostKey", "NoHostAuthenticationForLocalhost", "StdinNull", "GatewayPorts", "ClearAllForwardings", "HostbasedAuthentication", "KbdInteractiveAuthentication"},
	"counter": {"ConnectionAttempts", "ServerAliveCountMax", "RequiredRSASize"},
	"wait":    {"ConnectTimeout", "ServerAliveInterval", "ForwardX11Timeout"},
	"family":  {"inet", "inet6", "any", "INET"},
	"strict":  {"yes", "no", "ask", "accept-new", "off"},
	"ask":     {"yes", "no", "ask"},
	"alias":   {"Alias", "<name>", "%h"},
	"level":   {"QUIET", "quiet", "debug", "DEBUG3", "info", "ERROR", "fatal", "Verbose", "debug1"},
	"tty":     {"yes", "no", "force", "auto"},
	"forward": {"yes", "no", "/dev/null", "$FLEET", "SSH_AUTH_SOCK", "DIR/<token>"},
	"agent":   {"yes", "no", "ask", "confirm", "5m", "confirm 10m"},
	"master":  {"yes", "no", "auto", "autoask", "ask"},
	"persist": {"yes", "no", "10", "1h", "0"},
	"plain":   {"yes", "no"},
	"escape":  {"none", "~", "^X", "x", "^[", "^?", "\"\\\"\"", "^@"},
	"tunnel":  {"yes", "no", "ethernet", "point-to-point"},
	"digest":  {"md5", "sha256", "SHA512"},
	"session": {"none", "subsystem", "default"},
	"bad": {"Foo bar", "Port 0", "Ciphers aes999", "Match", "User", `Host "web`, "HostName %q", "ControlPath ${NOT_SET}", "BatchMode maybe", "ConnectTimeout x", "Match all host a", "ProxyJump @", "Include", "Port 22 23", `User "bob`, "Host", "Match exec", "Match frob x", "LogLevel silent", "LocalForward 80", "LocalForward x a:80", "DynamicForward a:b:c", "IPQoS af99", "TunnelDevice x", "StreamLocalBindMask 9", "PermitRemoteOpen a", "RekeyLimit 3", "HostKeyAlgorithms !ssh-rsa,*", "PubkeyAcceptedAlgorithms ,",
		"Include ${NOT_SET}/x", "UserKnownHostsFile none /x", "CanonicalDomains -x", "SendEnv A=1", "SetEnv A", "Match user", "Host a'b", "ProxyJump a b", "ProxyJump [a", "ProxyJump a:b", "MACs hmac-sha1,*", "KexAlgorithms -", "HostKeyAlgorithms +", "Match canonical user", "ConnectTimeout 1.5x", "ServerAliveInterval 5.", "AddKeysToAgent yes 5m", "ConnectionAttempts 0"},
	"before":   {"", "", "  ", "\t", " \t "},
	"equals":   {" ", " ", " ", "=", " = ", "\t", "  ", " ="},
	"end":      {"\n", "\n", "\n", "\n\n", " # a comment\n", "\r\n", "  \n", "\n# a comment\n"},
	"option":   {"Port=2300", "User=carol", "HostName=%h.b.test", "IdentityFile=/o", "ProxyJump=mail", "Ciphers=+aes128-cbc", "CanonicalizeHostname yes", "AddressFamily=inet6", "ControlPath=none", "StrictHostKeyChecking=no", "HostKeyAlgorithms=-ssh-rsa", "SendEnv=X", "CanonicalDomains=a.test", "ProxyCommand=none", "RemoteCommand=uptime", "Port 2301", "user carol", "UserKnownHostsFile=/a /b", "LogLevel=quiet", "KexAlgorithms=^ecdh-sha2-nistp256", "IdentitiesOnly=yes", "ClearAllForwardings=yes", "LocalForward=9000 a:90", "Ciphers=-*cbc*", "ControlMaster auto", "<added>"},
	"jumpflag": {"mail", "bob@gate:23", "one,two"},
	"own": {"ProxyJump=<jumpflag>", "ProxyJump=none", "IdentityFile=<path>", "IdentityFile=/o", "CertificateFile=/c", "Ciphers=<sign><cipher>", "HostKeyAlgorithms=<sign><key>", "AddressFamily=<family>", "IdentitiesOnly=<yes>", "ConnectTimeout=<time>",
		"HostKeyAlias=own", "ServerAliveInterval=<number>", "PreferredAuthentications=publickey", "PubkeyAuthentication=<yes>", "BindAddress=127.0.0.9"},
}

// newest is what ssh understands since 10.0.
var newest = sshtest.Grammar{
	"newer":    {"<not>tagged <tag>", "<not>localnetwork <network>", "<not>version <release>", "<not>sessiontype <types>", "<not>command <words>", "tagged=<tag>", "version=<release>", "command=<words>", "localnetwork=<network>", "host '<list>' user \"<people>\"", "exec=true", "<not>sessiontype=exec"},
	"fraction": {"1.5", "1.5s", "0.5", "1h1.5", "2m30.25s", ".9"},
	"added": {"Tag <tag>", "Tag <tag>", "User %u-x", "ObscureKeystrokeTiming interval:<interval>", "ObscureKeystrokeTiming <yes>", "ChannelTimeout *=<time> session:shell=90s", "ChannelTimeout none", "ChannelTimeout direct-*=0", "WarnWeakCrypto no-pq-kex", "WarnWeakCrypto yes", "Include DIR/${ONE}", "Include DIR/%u/x",
		"IPQoS va", "IPQoS va lowdelay", "RevokedHostKeys none", "VersionAddendum ${FLEET}-%p", "User <token>", "User %r", "SetEnv A=<token>", "Include %d/none /%h/x", "RequiredRSASize <number>", "ObscureKeystrokeTiming interval:20", "User ${FLEET}", "SetEnv A=<token> B=${FLEET}-%h", "VersionAddendum x %h # y", "RevokedHostKeys <path> <path>", "RefuseConnection closed", "ObscureKeystrokeTiming no", "ChannelTimeout session=5m", "VersionAddendum none", "WarnWeakCrypto no"},
	"interval": {"80", "1", "1000"},
	"tag":      {"a", "b", "*", "a,b", `""`, "!a,*"}, "network": {"127.0.0.0/8", "127.0.0.1", "10.0.0.1/8", "10.0.0.0/8,127.0.0.1/32", "10.0.0.0/8,!10.0.0.0/24", "::1/128", "0.0.0.0/0"},
	"release": {"OpenSSH_*", "OpenSSH_9*", "!*10*,*", "*"}, "types": {"shell", "exec", "none,subsystem", "*", "!exec,*"}, "words": {`""`, "uptime", "up*", "*", `"echo *"`, "!*"},
}

// invocation is a command line.
type invocation struct {
	connection conf.Flags
	host       host.Host
	command    string
}

func (i invocation) String() string { return strings.Join(i.words(), " ") }

// words are the arguments of ssh.
func (i invocation) words() []string {
	words := i.connection.Options()
	if i.host.User != "" {
		words = append(words, "-l", i.host.User)
	}
	if i.host.Port != 0 {
		words = append(words, "-p", fmt.Sprint(i.host.Port))
	}
	words = append(words, conf.Flags{Settings: strings.Split(i.host.Settings, "\n")}.Options()...)
	words = append(words, "--", i.host.Name)
	if i.command != "" {
		words = append(words, i.command)
	}
	return words
}

// trial is a configuration in its own directory.
type trial struct {
	*rand.Rand
	sshtest.Grammar
	dir string
}

func (r trial) make(text string) string {
	return strings.ReplaceAll(r.Make(r.Rand, text), "DIR", r.dir)
}

func (r trial) rarely(n int) bool { return r.IntN(n) == 0 }

// file makes lines; in files that are included fewer include others.
func (r trial) file(name string, lines int) {
	var b strings.Builder
	for range 1 + r.IntN(lines) {
		text := "<set>"
		switch {
		case r.rarely(4):
			text = "<header>"
		case r.rarely(1500):
			text = "<bad>"
		}
		line := r.make(text)
		if strings.HasPrefix(line, "Include") && name != "config" && (name != "one" || strings.Contains(line, r.dir)) { // no circles
			continue
		}
		if keyword, rest, ok := strings.Cut(line, " "); ok && r.rarely(3) {
			line = r.spelled(keyword) + r.make("<equals>") + rest
		}
		b.WriteString(r.make("<before>") + line + r.make("<end>"))
	}
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(b.String()), 0o600)); err != nil {
		panic(err)
	}
}

func (r trial) spelled(keyword string) string {
	return []string{strings.ToLower(keyword), strings.ToUpper(keyword), keyword}[r.IntN(3)]
}

func (r trial) invocation() invocation {
	i := invocation{connection: conf.Flags{Config: filepath.Join(r.dir, "config")}, host: host.Host{Name: r.make("<name>")}}
	c := &i.connection
	for r.rarely(3) {
		c.Settings = append(c.Settings, r.make("<option>"))
	}
	switch r.IntN(14) {
	case 0:
		c.Port = 2400
	case 1:
		c.User = "dave"
	case 2:
		c.Jump = r.make("<jumpflag>")
	case 3:
		c.Identities = []string{"/i/1"}
	case 4:
		c.IPv4 = true
	case 5:
		c.IPv6 = true
	case 6:
		i.host.User = "eve"
	case 7:
		i.host.Port = 2500
	case 8, 9:
		i.command = []string{"uptime", "echo x", "up"}[r.IntN(3)]
	}
	if r.rarely(3) {
		i.host.Settings = r.make("<own>") + "\n" + r.make("<own>")
	}
	return i
}

// check compares what run and explain use for a host with ssh -G: "" if it is the same.
func check(t *testing.T, usual string, i invocation) string {
	out, refusal := sshG(t, i)
	router, err := New(t.Context(), Params{Flags: i.connection, Command: i.command, Getenv: os.Getenv, Stderr: io.Discard})
	if err != nil {
		return disagree(refusal, err)
	}
	config, err := router.Configuration(t.Context())
	if err != nil {
		return disagree(refusal, err)
	}
	explained, err := config.Asker.Resolve(t.Context(), i.host.Asked())
	if err != nil || refusal != nil {
		return disagree(refusal, err)
	}
	want := sshtest.TableOfDump(out)
	if diff := cmp.Diff(want.Read(), sshtest.TableOf(explained).Read()); diff != "" {
		return "read (-ssh +ours)\n" + diff
	}
	explained, err = config.Asker.Explained(t.Context(), i.host.Asked())
	if err != nil {
		return "explain: " + err.Error()
	}
	if diff := cmp.Diff(want, sshtest.TableOf(explained)); diff != "" {
		return "explain (-ssh +ours)\n" + diff
	}
	found, err := router.Route(t.Context(), i.host)
	if err != nil { // of a jump host
		return ""
	}
	return differs(want, sshtest.TableOfDump(usual), found.Host)
}

// differs compares what is set for a run; what is as usual may have no value there.
func differs(want, usual sshtest.Table, r *conf.Resolved) string {
	got := sshtest.TableOf(r)
	for name := range got {
		k, _ := conf.KeywordOf(name)
		if slices.Contains(unused, k) || k.Text() {
			continue
		}
		if k == conf.SendEnv { // ssh reads the files twice for "Match !final", and names a variable twice then
			want[name] = slices.Compact(slices.Sorted(slices.Values(want[name])))
			got[name] = slices.Compact(slices.Sorted(slices.Values(got[name])))
		}
		if r.IsSet(k) || slices.Contains([]conf.Keyword{conf.HostName, conf.Port, conf.User}, k) {
			if diff := cmp.Diff(want[name], got[name]); diff != "" {
				return "run, " + name + " (-ssh +ours)\n" + diff
			}
		}
	}
	for name := range want.Read() {
		if _, ok := got[name]; !ok && !slices.Equal(want[name], usual[name]) && want[name][0] != "none" {
			return fmt.Sprintf("run has no %s, ssh has %q", name, want[name])
		}
	}
	return ""
}

// unused are keywords that make a host one for ssh, or that have no meaning for one that is not.
var unused = []conf.Keyword{conf.HostbasedAcceptedAlgorithms, conf.CASignatureAlgorithms, conf.GSSAPIAuthentication}

// disagree compares refusals.
func disagree(ssh, ours error) string {
	switch {
	case errors.Is(ours, conf.ErrUnsafeHost), errors.Is(ours, conf.ErrUnsafeUser): // stricter on purpose
		return ""
	case ssh != nil && strings.Contains(ssh.Error(), "Cannot execute command-line and remote command"): // the command wins
		return ""
	case ssh != nil && strings.Contains(ssh.Error(), "Cannot fork into background without a command"): // run has one
		return ""
	case ssh != nil && strings.Contains(ssh.Error(), "Could not resolve hostname"): // as soon as CanonicalizePermittedCNAMEs is set; ours says so later
		return ""
	case ssh != nil && strings.Contains(ssh.Error(), " RefuseConnection: "): // ours says so when it is to connect
		return ""
	case ours != nil && strings.Contains(ours.Error(), "its own jump host"): // ssh would start itself without end
		return ""
	case ssh != nil && ours == nil:
		return "ssh refuses: " + ssh.Error()
	case ssh == nil && ours != nil:
		return "ours refuses: " + ours.Error()
	}
	return ""
}

func sshG(t *testing.T, i invocation) (out string, refusal error) {
	t.Helper()
	out, refusal = askSSH(t, "-G", i)
	if refusal != nil && refusal.Error() == "" { // LogLevel=quiet
		return askSSH(t, "-Gv", i)
	}
	return out, refusal
}

func askSSH(t *testing.T, flag string, i invocation) (out string, refusal error) {
	t.Helper()
	return askWords(t, append([]string{flag}, i.words()...))
}

func askWords(t *testing.T, words []string) (out string, refusal error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ssh", words...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	if err != nil {
		return "", errors.New(errs.String())
	}
	return string(text), nil
}

// TestRandomConfigurations compares random configurations and command lines with the installed ssh,
// by the name server of TestCanonical.
func TestRandomConfigurations(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	release, err := exec.Command("ssh", "-V").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	v, _ := conf.ParseVersion(string(release))
	grammar := configs
	if v.AtLeast(conf.Version{Major: 10}) {
		for name, choices := range newest {
			grammar[name] = choices
		}
	}
	t.Setenv("FLEET", "/fleet")
	t.Setenv("ONE", "one")
	usual, err := sshG(t, invocation{connection: conf.Flags{Config: "none"}, host: host.Host{Name: "usual"}})
	if err != nil {
		t.Fatal(err)
	}
	count, seed := seedtest.Cases(t, 60)
	wrong, refused := 0, 0
	for n := range count {
		r := trial{rand.New(rand.NewPCG(seed, uint64(n/5))), grammar, t.TempDir()}
		t.Setenv("HOME", r.dir)
		for i, name := range sources {
			r.file(name, 6+18/(i+1))
		}
		r.Rand = rand.New(rand.NewPCG(seed, 1<<32+uint64(n)))
		i := r.invocation()
		if _, refusal := sshG(t, i); refusal != nil {
			refused++
		}
		if what := check(t, usual, i); what != "" {
			wrong++
			t.Errorf("case %d: ssh %s: %s\n%s", n, i, what, r.files())
		}
		if wrong > 20 {
			break
		}
	}
	t.Logf("%d queries, %d refused by ssh, %d wrong; %s", count, refused, wrong, release)
	if refused > count/2 {
		t.Errorf("ssh refuses %d of %d: the grammar has lost its way", refused, count)
	}
}

// sources are the files of a case: those below .ssh and inc are found by $HOME.
var sources = []string{"config", "one", "two", ".ssh/rel", "inc/a1", "inc/a2", "inc/b"}

func (r trial) files() (text string) {
	for _, name := range sources {
		b, _ := os.ReadFile(filepath.Join(r.dir, name))
		text += fmt.Sprintf("--- %s\n%s", name, b)
	}
	return text
}

// inOwnNetwork runs the test again in a network that has only the name server of this package,
// unless it runs there already.
func inOwnNetwork(t *testing.T) bool {
	t.Helper()
	const inside = "SSHPACE_TEST_INSIDE"
	if os.Getenv(inside) != "" {
		conn, err := net.ListenPacket("udp", "127.0.0.1:53")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		go serveNames(conn)
		return true
	}
	waittest.Again(t, []string{inside + "=1"}, ownNetwork(t)...)
	return false
}
