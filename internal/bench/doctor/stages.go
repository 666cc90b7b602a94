//go:build linux

package doctor

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// A server waits 5 to 9 ms on purpose before it answers a request for a login (auth2.c,
// ensure_minimum_time_since); starting a shell takes some milliseconds.
const (
	serverFloor = 100 * time.Millisecond
	deliberate  = 9 * time.Millisecond
)

// Longer times are not the work of a busy machine: the start of a connection, an sshd or a proxy, a
// key exchange without its computation, and a login to a jump host.
const (
	startFloor = 300 * time.Millisecond
	proxyFloor = 500 * time.Millisecond
	jumpFloor  = time.Second
)

// stage is a part of a login in which one side does something and the other waits. Stages follow
// each other, so that each wait belongs to one of them.
type stage struct {
	check, about string
	who, does    string // as in: the server takes long to answer
	suspects     string // possible causes, where nothing shows which
	between      string // where it lies, as in: between the signature and the accepted login
	theirs       bool   // a host's, which a private server has nothing of
	took         func(*Facts) stats.Interval
	floor        time.Duration
	hangs        func(*Stuck) bool               // nil: a login that hangs there has failed
	tells        func(*Facts) (where, do string) // how to find out which suspect it is
	causes       []cause                         // the first that holds is the one
}

// cause refines a finding about a stage if its condition holds.
type cause func(f *Facts, found *Finding) bool

// stages are in the order of a login. The steps before them, a name's look-up and the commands of
// Match exec, have their own checks.
var stages = []stage{
	{
		check: "proxy", about: "a slow ProxyCommand or jump host",
		who: "the ProxyCommand", does: "deliver the server's first line", between: "between the start of the ProxyCommand and the server's version line",
		took: proxyTook, floor: proxyFloor, tells: timeProxy, causes: []cause{throughJump},
	},
	{
		check: "connect", about: "a TCP connection that opens slowly",
		who: "the network or the server", does: "open the TCP connection",
		suspects: "its first packet is lost, or the server's queue of connections is full",
		between:  "between the first packet and the open TCP connection",
		took:     func(f *Facts) stats.Interval { return beyond(f.Logins.TCP, roundTrip(f)) }, floor: startFloor,
		tells: theirLines("it counts connections dropped because the queue was full (both numbers grow)", "nstat -az TcpExtListenDrops TcpExtListenOverflows; ss -ltn"),
	},
	{
		check: "banner", about: "a server slow to send its first line",
		who: "the server", does: "send its version line",
		suspects: "it is overloaded, or something is in front of sshd, such as TCP wrappers or a load balancer",
		between:  "between the open TCP connection and the server's version line", theirs: true,
		took: bannerTook, floor: startFloor,
		tells:  theirLines("it shows how busy the server is, and the rules of TCP wrappers", "uptime; grep -v '^#' /etc/hosts.allow /etc/hosts.deny; journalctl -t sshd -n 20 --no-pager"),
		causes: []cause{wrappers},
	},
	{
		check: "kex", about: "a key exchange that waits or hangs: the server, the network, MTU",
		who: "the server", does: "do its half of the key exchange",
		suspects: "it is overloaded, or packets are lost on the way", between: "between the version lines and the end of the key exchange", theirs: true,
		took: exchangeTook, floor: startFloor, hangs: during(record.PhaseKexInit, record.PhaseKex, record.PhaseNewKeys),
		tells:  theirLines("it shows how busy the server is", "uptime; ps -eo pcpu,args --sort=-pcpu | head -n 5"),
		causes: []cause{smallMTU},
	},
	{
		check: "host-key", about: "a client slow to check the host's key",
		who: "ssh on this machine", does: "decide about the server's key",
		suspects: "KnownHostsCommand, VerifyHostKeyDNS, or a known_hosts file on a slow file system",
		between:  "in looking up known keys, before the key exchange and in it",
		took:     hostKeyTook, floor: startFloor, hangs: during(record.PhaseHostKey),
		tells: func(f *Facts) (string, string) {
			return "on this machine; it shows which of them are set", typedWith(f, "-G") + " | grep -iE 'knownhosts|verifyhostkeydns'"
		},
		causes: []cause{asksAboutKeys, slowKeyFiles},
	},
	{
		check: "request", about: "a server slow to look up names and accounts: UseDNS, LDAP",
		who: "the server", does: "answer the first login request",
		suspects: "it looks up the client's name in the DNS (UseDNS) or the account (LDAP, SSSD)",
		between:  "between the first login request and its answer", theirs: true,
		took: func(f *Facts) stats.Interval { return beyond(f.Logins.Request, roundTrip(f)+deliberate) }, floor: serverFloor,
		hangs: during(record.PhaseAuthNone), tells: timeNames, causes: []cause{useDNS, slowAccount},
	},
	{
		check: "authorized-keys", about: "a server slow to look up keys: AuthorizedKeysCommand",
		who: "the server", does: "decide whether it knows the key",
		suspects: "AuthorizedKeysCommand, or authorized_keys on a slow file system (NFS home)",
		between:  "between offering the key and the server's answer", theirs: true,
		took: keysTook, floor: serverFloor, hangs: during(record.PhaseQuery),
		tells:  theirLines("it shows the command, if there is one: time it with the user's name", "sshd -T | grep -iE 'authorized(keys|principals)command'"),
		causes: []cause{keysCommand},
	},
	{
		check: "signature", about: "a client slow to sign: an agent, a security key, a smart card",
		who: "this machine", does: "sign with the key",
		suspects: "the agent, a security key that waits for a touch, or a smart card", between: "between the server's yes to the key and the signature",
		took: func(f *Facts) stats.Interval { return f.Logins.Signing }, floor: startFloor,
		hangs: func(s *Stuck) bool { return s.During == record.PhaseSign && !s.Signed },
		tells: func(*Facts) (string, string) {
			return "on this machine; it times a signature with every key of the agent. If the key must be touched or is far away, share connections (ControlMaster): it signs once for all of them", "ssh-add -L >/tmp/agent-keys.pub && time ssh-add -T /tmp/agent-keys.pub"
		},
	},
	{
		check: "account", about: "a server slow to let the account in: PAM account",
		who: "the server", does: "let the account in once the key is proven",
		suspects: "PAM's account modules (LDAP, SSSD, access rules)", between: "between the signature and the server's answer", theirs: true,
		took: accountTook, floor: serverFloor,
		hangs:  func(s *Stuck) bool { return s.During == record.PhaseSign && s.Signed },
		tells:  theirLines("it shows PAM's account modules; sshd's log has their complaints", "grep -h ^account /etc/pam.d/sshd /etc/pam.d/common-account; journalctl -t sshd -n 20 --no-pager"),
		causes: []cause{slowModule("account")},
	},
	{
		check: "session", about: "a server slow to open sessions: PAM session, message of the day",
		who: "the server", does: "open a session", suspects: "PAM's session modules, such as pam_systemd or pam_mount", between: "between the login and the open session", theirs: true,
		// A stall lies there, too.
		took: func(f *Facts) stats.Interval { return beyond(f.Logins.Session, roundTrip(f)+usualStall) }, floor: serverFloor,
		hangs:  during(record.PhaseChannel, record.PhaseExec),
		tells:  theirLines("it shows PAM's session modules; one of them is slow", "grep -h ^session /etc/pam.d/sshd /etc/pam.d/common-session"),
		causes: []cause{motd, slowModule("session")},
	},
	{
		check: "shell", about: "slow start-up files of the remote shell, ~/.ssh/rc, a forced command",
		who: "the account's shell on the server", does: "run a command that does nothing (true)",
		suspects: "its start-up files, ~/.ssh/rc, or a forced command", between: "while a command that does nothing runs", theirs: true,
		took: commandTook, floor: serverFloor, hangs: during(record.PhaseCommand),
		tells: func(f *Facts) (string, string) {
			return "on this machine; it shows the account's shell", typed(f, "getent passwd $USER")
		},
		causes: []cause{forced, ownRC, startUp},
	},
}

// stageChecks are about the stages.
var stageChecks = func() (all []Check) {
	for _, s := range stages {
		all = append(all, Check{s.check, s.about, []Probe{LoggingIn, Shared}, s.judge})
	}
	return all
}()

// judge reports a slow stage, or a login that hangs in it.
func (s stage) judge(f *Facts) []Finding {
	var found Finding
	switch stuck := f.Stuck; {
	case s.theirs && f.Own:
		return nil
	case stuck != nil && s.hangs != nil && s.hangs(stuck):
		found = Finding{
			What: "a login hangs: it waits for " + s.who + " to " + s.does, Breaks: true,
			Evidence: fmt.Sprintf("no answer for %s %s", stuck.After.Round(100*time.Millisecond), s.between), Gain: "logins that do not hang",
		}
	default:
		cost := s.took(f)
		if !counts(cost, s.floor) {
			return nil
		}
		found = Finding{
			What: s.who + " takes long to " + s.does, Cost: cost,
			Evidence: fmt.Sprintf("%s more than usual %s", Milliseconds(cost), s.between), Gain: ofLogin(f, cost),
		}
	}
	if s.suspects != "" {
		found.What += ": " + s.suspects
	}
	found.Per = perLogin
	found.Where, found.Do = s.tells(f)
	for _, holds := range s.causes {
		if holds(f, &found) {
			break
		}
	}
	return []Finding{found}
}

// during returns whether a login hangs in one of the phases, which belong to a stage.
func during(phases ...login.Phase) func(*Stuck) bool {
	return func(s *Stuck) bool { return slices.Contains(phases, s.During) }
}

// theirLines returns lines for the server's root that show something.
func theirLines(shows, do string) func(*Facts) (where, do string) {
	return func(*Facts) (string, string) { return "on the server, as root; " + shows, do }
}

func proxyTook(f *Facts) stats.Interval {
	if f.Logins.Proxy == "" || len(f.Jumps) > 0 && f.Logins.Version.Lo < float64(jumpFloor) {
		return stats.Interval{}
	}
	return beyond(f.Logins.Version, roundTrip(f))
}

// timeProxy shows when the first line comes; the limit is for proxies that stay.
func timeProxy(f *Facts) (where, do string) {
	return "on this machine; it shows when the server's first line comes. If the command itself starts quickly, the server behind it is slow",
		"timeout 20 sh -c " + shell.Quote(f.Logins.Proxy) + " </dev/null | { time head -n 1; }"
}

func throughJump(f *Facts, found *Finding) bool {
	if len(f.Jumps) == 0 {
		return false
	}
	jump := f.Jumps[len(f.Jumps)-1]
	found.What = "the jump host is slow: going through it takes a login of its own"
	found.Where, found.Do = "on this machine; it explains why that login is slow", "sshpace doctor "+shell.Word(jump)
	return true
}

func bannerTook(f *Facts) stats.Interval {
	if f.Logins.Proxy != "" {
		return stats.Interval{}
	}
	return beyond(f.Logins.Version, roundTrip(f))
}

// wrappers reports whether the server looks up the client's name before its version line, as rules
// about names (hosts_access(5)) require, and completes the finding by that.
func wrappers(f *Facts, found *Finding) bool {
	s := f.Server
	if s == nil || !s.Wrapped || !most(s.Reverse, found.Cost) {
		return false
	}
	found.What = "the server looks up the client's name before it says anything (TCP wrappers), and its DNS is slow"
	found.Evidence += fmt.Sprintf("; there, looking up %s takes %s", client(f, "the client"), Milliseconds(s.Reverse))
	found.Where, found.Do = "on the server, as root; the rules that need names", "grep -v '^#' /etc/hosts.allow /etc/hosts.deny"
	return true
}

// exchangeTook leaves out two round trips and the computation of both sides: ours is known, and
// theirs is taken to be up to twice as much.
func exchangeTook(f *Facts) stats.Interval {
	return beyond(f.Logins.Exchange, 2*roundTrip(f)+3*time.Duration(f.Logins.ClientCPU.Hi))
}

// hostKeyTook leaves out the cost of large files of host keys, which have their own check: that is
// CPU time, and takes several times as long where other work keeps the cores busy.
func hostKeyTook(f *Facts) stats.Interval {
	const busy = 10
	cost := f.Logins.HostKey
	for _, k := range f.KnownHosts {
		cost = beyond(cost, busy*time.Duration(k.Extra.Value))
	}
	return cost
}

// asksAboutKeys reports whether ssh asks a command or the DNS for host keys, which takes longer
// than any file, and completes the finding by that.
func asksAboutKeys(f *Facts, found *Finding) bool {
	if len(f.Asks) == 0 {
		return false
	}
	var names []string
	for _, s := range f.Asks {
		names = append(names, fmt.Sprintf("%s %s (%s)", s.Keyword, s.Value, s.Where))
	}
	before, _, _ := strings.Cut(found.What, ": KnownHosts")
	found.What = before + ": " + strings.Join(names, ", or ")
	if s := f.Asks[0]; s.Keyword == conf.KnownHostsCommand {
		found.Where = "on this machine; it times the command. Have it cache its answers, or write them into a file that UserKnownHostsFile names, and leave KnownHostsCommand out"
		found.Do = "time"
		for _, word := range strings.Fields(s.Value) { // ssh runs it without a shell
			found.Do += " " + shell.Quote(strings.ReplaceAll(word, "%H", f.KnownAs))
		}
		return true
	}
	found.Where, found.Do = here(f), configure(f, "VerifyHostKeyDNS no")
	return true
}

// slowKeyFiles completes the finding by the remaining cause: ssh reads nothing but files, so that
// one of them is slow to read.
func slowKeyFiles(f *Facts, found *Finding) bool {
	if len(f.KeyFiles) == 0 {
		return false
	}
	before, _, _ := strings.Cut(found.What, ": KnownHosts")
	found.What = before + ": probably a known_hosts file on a slow file system"
	found.Where = "on this machine; it times reading the files. Keep them on a local disk (UserKnownHostsFile)"
	found.Do = "time " + shell.Line(append([]string{"cat"}, f.KeyFiles...)...) + " >/dev/null"
	return true
}

// smallMTU: the first packets that are larger than a tunnel carries are those of a key exchange:
// the keys of one against quantum computers, and the lists of algorithms. The suggested trial
// avoids such keys, and reduces the lists to the agreed algorithms.
func smallMTU(f *Facts, found *Finding) bool {
	if !found.Breaks {
		return false
	}
	found.What = "a login hangs in the key exchange: probably its large packets do not fit through the path (MTU of a tunnel or VPN)"
	got := f.Stuck.Got
	large := slices.DeleteFunc(slices.Clone(f.Stuck.Others), func(name string) bool {
		a, known := alg.Lookup(alg.Kex, name)
		return name == got.Kex || !known || !a.PostQuantum
	})
	if got.Kex != "" {
		found.Evidence += " (" + got.Kex + ")"
		large = append([]string{got.Kex}, large...)
	}
	options := []string{"-o", "KexAlgorithms=-" + strings.Join(large, ",")}
	if got.Cipher != "" {
		options = append(options, "-o", "Ciphers="+got.Cipher, "-o", "MACs="+cmp.Or(got.MAC, unusedMAC))
	}
	found.Where = "on this machine; if this logs in, lower the MTU of the tunnel (ip link set dev DEV mtu 1280) and leave the options out again"
	found.Do = typedWith(f, options...)
	return true
}

// unusedMAC keeps the list of MACs short where the cipher needs none.
const unusedMAC = "hmac-sha2-256"

// timeNames shows which look-up is slow.
func timeNames(f *Facts) (where, do string) {
	user := "USER"
	if f.Logins.User != "" {
		user = shell.Word(f.Logins.User)
	}
	return "on the server, as root; it shows whether sshd looks up names, and times both look-ups",
		"sshd -T | grep -i usedns; time getent hosts " + client(f, "CLIENT") + "; time getent passwd " + user
}

// useDNS reports whether sshd's look-up of the client's name (UseDNS) is the cause, and completes
// the finding by that: the look-up takes long there, or UseDNS is on and the look-up of the account
// is quick.
func useDNS(f *Facts, found *Finding) bool {
	s := f.Server
	if s == nil || s.Settings["usedns"] == "no" {
		return false
	}
	slow := most(s.Reverse, found.Cost)
	if !slow && (s.Settings["usedns"] != "yes" || most(s.Account, found.Cost)) {
		return false
	}
	found.What = "the server looks up this machine's name at every login (UseDNS), and its DNS is slow"
	if slow {
		found.Evidence += fmt.Sprintf("; there, looking up %s takes %s", client(f, "the client"), Milliseconds(s.Reverse))
	} else {
		found.Evidence += "; there, UseDNS is on, and looking up the account is quick"
	}
	found.Where, found.Do = "on the server, as root", reload("UseDNS no", "00-usedns.conf")
	return true
}

func slowAccount(f *Facts, found *Finding) bool {
	if f.Server == nil || !most(f.Server.Account, found.Cost) {
		return false
	}
	found.What = "the server is slow to look up the account (LDAP, SSSD or similar)"
	found.Evidence += fmt.Sprintf("; there, looking up the account takes %s", Milliseconds(f.Server.Account))
	found.Where, found.Do = "on the server, as root; it shows which service is slow", `time getent passwd "$(id -un)"; grep ^passwd /etc/nsswitch.conf`
	return true
}

// most reports whether one figure explains another.
func most(part, whole stats.Interval) bool { return part.N > 0 && part.Value >= whole.Value/3 }

// decided is how long sshd takes for one of the two requests with the key. The second one may take
// up to rounded times as long: sshd answers each only when a time is over that it doubles as often
// as necessary (auth2.c, ensure_minimum_time_since).
func decided(f *Facts, request stats.Interval) stats.Interval {
	return beyond(request, roundTrip(f)+deliberate)
}

const rounded = 3

// keysTook returns how long sshd looks for the user's key: when it is offered, and again when the
// login is signed.
func keysTook(f *Facts) stats.Interval {
	once, again := decided(f, f.Logins.Query), decided(f, f.Logins.Entry)
	if again.N == 0 {
		return once
	}
	most := once.Scaled(rounded)
	again.Value, again.Lo, again.Hi = min(again.Value, most.Value), min(again.Lo, most.Lo), min(again.Hi, most.Hi)
	return once.Plus(again)
}

func keysCommand(f *Facts, found *Finding) bool {
	if f.Server == nil {
		return false
	}
	for _, name := range []string{"AuthorizedKeysCommand", "AuthorizedPrincipalsCommand"} {
		if command := f.Server.Settings[strings.ToLower(name)]; command != "" && command != "none" {
			found.What = fmt.Sprintf("the server runs %s to decide whether it knows the key, and that is slow", name)
			found.Evidence += fmt.Sprintf("; there it is %q, and sshd runs it for every offer and once more for the signature", command)
			found.Where = "on the server, as root; it times the command. Have it cache its answers, or put the keys into a file that AuthorizedKeysFile names, and set " + name + " none"
			found.Do = timeCommand(f, strings.ToLower(name))
			return true
		}
	}
	return false
}

// timeCommand returns a line for the server's root that times a command of sshd_config for the
// account; without arguments sshd gives it the user's name (sshd_config(5)). It contains no text
// from the host.
func timeCommand(f *Facts, setting string) string {
	user := f.Logins.User
	if odd := strings.Trim(user, "abcdefghijklmnopqrstuvwxyz0123456789_-") != ""; odd || user == "" { // a word of sed's, too
		user = "USER"
	}
	return fmt.Sprintf(`c=$(sshd -T | sed -n 's/^%s //p')
time $(echo "$c" | sed 's/%%u/%s/g; /^[^ ]*$/s/$/ %s/')`, setting, user, user)
}

// accountTook leaves out the second look for the key.
func accountTook(f *Facts) stats.Interval {
	once, again := decided(f, f.Logins.Query), decided(f, f.Logins.Entry)
	if once.N == 0 || again.N == 0 {
		return again
	}
	return beyond(again, rounded*time.Duration(max(0, once.Hi)))
}

// quick lists PAM's modules that wait for nobody.
var quick = []string{
	"pam_unix", "pam_permit", "pam_deny", "pam_nologin", "pam_loginuid", "pam_keyinit", "pam_selinux", "pam_limits", "pam_env", "pam_umask",
	"pam_localuser", "pam_succeed_if", "pam_motd", "pam_mail", "pam_lastlog", "pam_access", "pam_time", "pam_namespace", "pam_rootok",
}

// slowModule names the modules of a kind that PAM runs and that may wait for somebody.
func slowModule(kind string) cause {
	return func(f *Facts, found *Finding) bool {
		if f.Server == nil || f.Server.Settings["usepam"] == "no" {
			return false
		}
		slow := slices.DeleteFunc(slices.Clone(f.Server.Modules[kind]), func(module string) bool {
			name, _, _ := strings.Cut(module, ".so")
			return slices.Contains(quick, name)
		})
		switch len(slow) {
		case 0:
			return false
		case 1:
			before, _, _ := strings.Cut(found.What, ": ")
			found.What = fmt.Sprintf("%s: probably PAM's %s module %s", before, kind, slow[0])
			found.Evidence += "; all other " + kind + " modules there are quick ones"
		default:
			found.Evidence += "; one of " + strings.Join(slow, ", ")
		}
		return true
	}
}

func motd(f *Facts, found *Finding) bool {
	s := f.Server
	if s == nil || !most(s.Greeted, found.Cost) {
		return false
	}
	found.What = "the server takes long to open a session: PAM makes the message of the day"
	found.Evidence += fmt.Sprintf("; there, %s in /etc/update-motd.d took %s", unit.Count(len(s.Motd), "script"), Milliseconds(s.Greeted))
	found.Where = "on the server, as root; this turns off the message of the day"
	found.Do = `sed -i.bak 's/^session.*pam_motd/#&/' /etc/pam.d/sshd`
	return true
}

// commandTook is zero where no command ran.
func commandTook(f *Facts) stats.Interval {
	if f.NoCommands != nil {
		return stats.Interval{}
	}
	return beyond(f.Logins.Command, roundTrip(f))
}

// elsewhere reports whether the login shell itself starts quickly there.
func elsewhere(f *Facts, found *Finding) bool {
	return f.Server != nil && f.Server.Started.N > 0 && !most(f.Server.Started, found.Cost)
}

func forced(f *Facts, found *Finding) bool {
	if f.Server == nil || !f.Server.Forced || !elsewhere(f, found) {
		return false
	}
	found.What = "the account's forced command is slow (ForceCommand of sshd, or command= in authorized_keys)"
	if command := f.Server.Settings["forcecommand"]; command != "" && command != "none" {
		found.What = "the account's ForceCommand is slow"
		found.Evidence += fmt.Sprintf("; there it is %q", command)
	}
	found.Where = "on the server, as root; it shows the command"
	from := client(f, "127.0.0.1")
	found.Do = "sshd -T -C user=" + shell.Word(f.Logins.User) + ",host=" + from + ",addr=" + from + " | grep -i forcecommand"
	return true
}

func ownRC(f *Facts, found *Finding) bool {
	if f.Server == nil || f.Server.RC == "" || !elsewhere(f, found) {
		return false
	}
	found.What = "the server runs " + f.Server.RC + " before every command, and that is slow"
	const then = "it moves the file away, and mv back undoes that. Remove commands from it that are slow, or of use on terminals only"
	rc := shell.Word(f.Server.RC)
	move := "mv -i " + rc + " " + rc + ".sshpace"
	found.Where, found.Do = "on this machine; "+then, typed(f, move)
	if strings.HasPrefix(f.Server.RC, "/etc/") {
		found.Where, found.Do = "on the server, as root; "+then, "mv -i /etc/ssh/sshrc /etc/ssh/sshrc.sshpace"
	}
	return true
}

// guards are lines that end start-up files meant for people, where nobody types: the first line of
// the file that each shell reads even for a command (bash(1) INVOCATION, zsh(1) STARTUP/SHUTDOWN
// FILES, fish(1), tcsh(1)).
var guards = map[string]struct{ file, line string }{
	"bash": {"~/.bashrc", `[[ $- = *i* ]] || return`},
	"zsh":  {"~/.zshenv", `[[ -o interactive ]] || return`},
	"fish": {"~/.config/fish/config.fish", `status is-interactive; or exit`},
	"tcsh": {"~/.tcshrc", `if (! $?prompt) exit`},
	"csh":  {"~/.cshrc", `if (! $?prompt) exit`},
}

// startUp blames the shell's file only if the shell was measured to be slow, and no forced command
// may be the cause: the remedy rewrites that file.
func startUp(f *Facts, found *Finding) bool {
	if f.Server == nil || f.Server.Forced || !most(f.Server.Started, found.Cost) {
		return false
	}
	guard, known := guards[filepath.Base(f.Server.Shell)]
	if !known {
		return false
	}
	found.What = fmt.Sprintf("the remote shell's start-up file %s is slow, and runs for every command", guard.file)
	found.Evidence += " in " + f.Server.Shell
	found.Where = "on this machine; commands then skip the file and its settings; the old file stays as " + guard.file + ".sshpace"
	copied := guard.file + ".sshpace"
	found.Do = strings.Join([]string{ // of words that all of these shells understand
		typed(f, "[ ! -e "+copied+" ]"), typed(f, "cp "+guard.file+" "+copied), // later changes are not lost
		typed(f, "echo '"+guard.line+"' >"+guard.file), typed(f, "cat "+copied+" >>"+guard.file),
	}, " &&\n")
	return true
}

// accountChecks are about accounts that accept logins.
var accountChecks = []Check{{"no-shell", "an account that runs no commands", []Probe{LoggingIn}, noShell}}

func noShell(f *Facts) []Finding {
	n := f.NoCommands
	if n == nil {
		return nil
	}
	evidence := fmt.Sprintf("the command true ended with exit status %d", n.Status)
	if n.Said != "" {
		evidence += fmt.Sprintf(", and the server said %q", n.Said)
	}
	if openssh.HasExpired([]string{n.Said}) {
		return []Finding{{
			What: "the login works, but the account runs no commands: its password has expired", Breaks: true,
			Evidence: evidence, Where: "on this machine; it asks for a new password", Do: typed(f), Gain: "commands that run",
		}}
	}
	user := f.Logins.User
	if user == "" {
		user = "USER"
	}
	return []Finding{{
		What: "the login works, but the account runs no commands: its shell is nologin or similar, or a forced command refuses them", Breaks: true,
		Evidence: evidence,
		Where:    "on the server; it shows the account's shell. Nothing is wrong if the account is for SFTP or forwarding only", Do: "getent passwd " + shell.Word(user),
		Gain: "commands that run",
	}}
}
