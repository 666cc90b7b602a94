//go:build linux

package doctor

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"sshpace/internal/base/shell"
	"sshpace/internal/measure/handshake"
	"sshpace/internal/measure/symptoms"
)

// A server waits 5 to 9 ms on purpose before it answers a request for a login
// (auth2.c, ensure_minimum_time_since); starting a shell takes some milliseconds.
const (
	serverFloor = 100 * time.Millisecond
	deliberate  = 9 * time.Millisecond
)

// A delayed acknowledgement takes 40 ms on Linux (TCP_DELACK_MIN), at most 200 ms
// (TCP_DELACK_MAX), and a little more where the machine is busy. More than
// usualStall after a login is let in is somebody else's doing.
const (
	leastStall = 35 * time.Millisecond
	usualStall = 75 * time.Millisecond
	mostStall  = 220 * time.Millisecond
)

// serverChecks are about what the server does, and the way to it.
var serverChecks = []Check{
	{"stall", "waits of small packets for acknowledgements", []symptoms.Probe{symptoms.LoggingIn, symptoms.Shared}, stalls},
	{"request", "a server slow to answer: UseDNS, accounts", []symptoms.Probe{symptoms.LoggingIn, symptoms.Shared}, slowRequest},
	{"session", "a server slow to open sessions: PAM, message of the day", []symptoms.Probe{symptoms.LoggingIn, symptoms.Shared}, slowSession},
	{"shell", "slow start-up files of the remote shell", []symptoms.Probe{symptoms.LoggingIn, symptoms.Shared}, slowShell},
}

// stalls are Nagle's algorithm on one side waiting for a delayed acknowledgement
// of the other. Nobody logs in to a private server.
func stalls(f *symptoms.Facts) (found []Finding) {
	if f.Own {
		return nil
	}
	if s := beyond(f.Logins.Service, roundTrip(f)); isStall(s) {
		found = append(found, Finding{
			What: "ssh waits for an acknowledgement that the server delays (Nagle's algorithm)",
			Cost: s, Per: perLogin,
			Evidence: fmt.Sprintf("between the new keys and the accepted service pass %s more than a round trip (%s)", Milliseconds(s), trip(f)),
			Where:    "on the server, as root, until it restarts; without that: sshpace run does not wait", Do: quickackThere(client(f, "CLIENT")), Gain: ofLogin(f, s),
		})
	}
	if s := beyond(f.Logins.Session, roundTrip(f)); isStall(s) && s.Lo <= float64(usualStall) && f.Route != "" {
		found = append(found, Finding{
			What: "sshd waits for an acknowledgement that this machine delays (Nagle's algorithm)",
			Cost: s, Per: perLogin,
			Evidence: fmt.Sprintf("between being let in and the open session pass %s more than a round trip (%s)", Milliseconds(s), trip(f)),
			Where:    "on this machine, as root, until it restarts; without that: sshpace run does not wait", Do: quickack(f.Route), Gain: ofLogin(f, s),
		})
	}
	return found
}

func isStall(s handshake.Figure) bool {
	return s.N > 0 && s.Lo >= float64(leastStall) && s.Lo <= float64(mostStall)
}

// client is our address as a shell on the host tells it, or a word in its place where
// that is no address: what root is told to type holds nothing else of a host's.
func client(f *symptoms.Facts, otherwise string) string {
	if f.Server == nil {
		return otherwise
	}
	addr, err := netip.ParseAddr(f.Server.Client)
	if err != nil {
		return otherwise
	}
	return addr.WithZone("").String()
}

// quickackThere is a line for the server's root that sets the route attribute quickack
// (ip-route(8)) for a client. It asks for the route itself: an account's shell, which is
// all that we hear, could name any.
func quickackThere(client string) string {
	return "ip route replace $(ip route get " + client + " | sed 's/ uid .*//;/^local /s/$/" + ofLocal + "/;q') quickack 1"
}

// ofLocal is what a route to this machine itself has and `ip route get` does not say.
const ofLocal = " table local proto kernel scope host"

// quickack is such a line for this machine, out of what `ip route get` says here.
func quickack(got string) string {
	words := strings.Fields(got)
	local := len(words) > 0 && words[0] == "local"
	var keep []string
	for i := 0; i < len(words) && words[i] != "uid" && words[i] != "cache"; i++ {
		keep = append(keep, words[i])
	}
	if local {
		keep = append(keep, strings.Fields(ofLocal)...)
	}
	return "ip route replace " + shell.Line(keep...) + " quickack 1"
}

// slowRequest: sshd looks the client's address up where UseDNS is on, and the
// account, before it answers the first request.
func slowRequest(f *symptoms.Facts) []Finding {
	cost := beyond(f.Logins.Request, roundTrip(f)+deliberate)
	if f.Own || !worth(cost, serverFloor) {
		return nil
	}
	found := Finding{
		What: "the server takes long to answer the first request (sshd or PAM: names, accounts)",
		Cost: cost, Per: perLogin, Evidence: fmt.Sprintf("it took %s more than a round trip", Milliseconds(cost)),
		Where: "on the server, as root; it shows what sshd does meanwhile", Do: "strace -f -r -e trace=network,file -p $(pgrep -o -x sshd)", Gain: ofLogin(f, cost),
	}
	s := f.Server
	switch {
	case s == nil:
	case most(s.Reverse, cost):
		found.What = "the server looks this machine's name up at every login (UseDNS), and that is slow"
		found.Evidence += fmt.Sprintf("; there, looking %s up takes %s", s.Client, Milliseconds(s.Reverse))
		found.Where = "on the server, as root"
		found.Do = reload("UseDNS no", "00-usedns.conf")
	case most(s.Account, cost):
		found.What = "the server is slow to look the account up (LDAP, SSSD or the like)"
		found.Evidence += fmt.Sprintf("; there, looking the account up takes %s", Milliseconds(s.Account))
		found.Where, found.Do = "on the server, as root; it shows which service is slow", `time getent passwd "$(id -un)"; grep ^passwd /etc/nsswitch.conf`
	}
	return []Finding{found}
}

// most tells whether one figure explains another.
func most(part, whole handshake.Figure) bool { return part.N > 0 && part.Value >= whole.Value/3 }

// reload is a line that puts a setting before all others of sshd's and makes it
// read them. A server without that folder has one file.
func reload(setting, file string) string {
	return shell.Print(setting+"\n") + " >/etc/ssh/sshd_config.d/" + file + " && sshd -t && systemctl reload ssh"
}

// slowSession: PAM's session modules run, and the message of the day is made,
// between being let in and the open session. A stall lies there, too.
func slowSession(f *symptoms.Facts) []Finding {
	cost := beyond(f.Logins.Session, roundTrip(f)+usualStall)
	if f.Own || !worth(cost, serverFloor) {
		return nil
	}
	found := Finding{
		What: "the server takes long to open a session (PAM)", Cost: cost, Per: perLogin,
		Evidence: fmt.Sprintf("between being let in and the open session pass %s more than a round trip and a stall", Milliseconds(cost)),
		Where:    "on the server; it shows the modules, of which one is slow", Do: "grep -h ^session /etc/pam.d/sshd /etc/pam.d/common-session", Gain: ofLogin(f, cost),
	}
	if s := f.Server; s != nil && most(s.Greeted, cost) {
		found.What = "the server takes long to open a session: PAM makes the message of the day"
		found.Evidence += fmt.Sprintf("; there, %s in /etc/update-motd.d took %s", plural(len(s.Motd), "script", "scripts"), Milliseconds(s.Greeted))
		found.Where = "on the server, as root: no message of the day is made any more"
		found.Do = `sed -i.bak 's/^session.*pam_motd/#&/' /etc/pam.d/sshd`
	}
	return []Finding{found}
}

// guards end start-up files that are for people, where nobody types: the first
// line of the file that each shell reads even for a command (bash(1) INVOCATION,
// zsh(1) STARTUP/SHUTDOWN FILES, fish(1), tcsh(1)).
var guards = map[string]struct{ file, line string }{
	"bash": {"~/.bashrc", `case $- in *i*) ;; *) return ;; esac`},
	"zsh":  {"~/.zshenv", `[[ -o interactive ]] || return`},
	"fish": {"~/.config/fish/config.fish", `status is-interactive; or exit`},
	"tcsh": {"~/.tcshrc", `if (! $?prompt) exit`},
	"csh":  {"~/.cshrc", `if (! $?prompt) exit`},
}

func slowShell(f *symptoms.Facts) []Finding {
	cost := beyond(f.Logins.Command, roundTrip(f))
	if f.Own || !worth(cost, serverFloor) {
		return nil
	}
	found := Finding{
		What: "the remote shell is slow to start, even for a command", Cost: cost, Per: perLogin,
		Evidence: fmt.Sprintf("the command true takes %s", Milliseconds(cost)),
		Where:    "on this machine; it shows what the account's shell is", Do: typed(f, "getent passwd $USER"), Gain: ofLogin(f, cost),
	}
	if f.Server == nil {
		return []Finding{found}
	}
	if guard, known := guards[filepath.Base(f.Server.Shell)]; known {
		found.What = fmt.Sprintf("the remote shell's start-up file %s is slow, and runs for every command", guard.file)
		found.Evidence += " in " + f.Server.Shell
		found.Where = "on this machine; it makes the file end where nobody types"
		found.Do = typed(f, "cp "+guard.file+" "+guard.file+".bak; { echo '"+guard.line+"'; cat "+guard.file+".bak; } >"+guard.file)
	}
	return []Finding{found}
}
