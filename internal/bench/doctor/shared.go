//go:build linux

package doctor

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/login"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// masters examines the socket at ControlPath.
func (p *Patient) masters(ctx context.Context) error {
	m := p.facts.Master
	if m == nil { // no socket is there
		return nil
	}
	p.Progress("the ControlMaster at " + m.Path)
	limited, cancel := context.WithTimeout(ctx, openssh.MasterLimit)
	defer cancel()
	began := time.Now()
	err := p.SSH.Check(limited, m.Path, p.facts.Host)
	m.Waited, m.PID = time.Since(began), keeper(m.Path)
	m.Keep, m.PID = m.PID > 0, cmp.Or(m.PID, holder(m.Path))
	switch {
	case err == nil:
		m.State = Live
	case limited.Err() != nil && ctx.Err() == nil:
		m.State = Hung
	case !openssh.Listens(m.Path) && !m.Unset:
		m.State = Dead
	default:
		p.facts.Master = nil // it answered, but not as a master
	}
	return nil
}

// shared opens a connection that sessions share, and asks its questions there: the cost of a
// session, and the server's state.
func (p *Patient) shared(ctx context.Context) error {
	if p.facts.Own || p.ticket.Admit(ctx, p.Destination.Label) != nil { // nobody's shell is behind a private server
		return nil
	}
	p.Progress("sessions over one connection")
	ends := p.ends()
	ends.Destination = p.Destination.With(quiet...)
	m := p.facts.Master
	lives := m != nil && m.State == Live
	if lives {
		p.facts.Sharing.Session = p.sessions(ctx, ends.SessionCase("", m.Path).Argv)
	}
	master, err := ends.StartMaster(ctx)
	p.ticket.End(admit.Done)
	if err != nil {
		return nil // this server, or this client, has none: nothing is known then
	}
	defer master.Close()
	p.made++
	session := ends.SessionCase("", master.Socket()).Argv
	if !lives {
		p.facts.Sharing.Session = p.sessions(ctx, session)
	}
	argv := session("/dev/null")
	p.facts.Server = p.ask(ctx, append(argv[:len(argv)-1], "exec sh"))
	p.oldGroups(ctx)
	return nil
}

// sessions returns the time of sessions over a master; nothing if it gives none.
func (p *Patient) sessions(ctx context.Context, session login.ArgvFunc) stats.Interval {
	var took []time.Duration
	for range max(hostLogins.Count, p.Logins.Count) {
		l, err := p.Ends.Watch(ctx, session)
		if err != nil {
			return stats.Interval{}
		}
		took = append(took, l.Whole)
	}
	return middle(took)
}

// quiet holds the settings of a master that nobody else should notice.
var quiet = []string{"ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no", "UpdateHostKeys=no"}

// questions is a script for a POSIX shell on the host.
const questions = `a=${SSH_CONNECTION%% *}
echo "@client $a"
echo "@shell $SHELL"
echo "@groups $(id -G)"
for f in /etc/update-motd.d/*; do [ -x "$f" ] && echo "@motd $f"; done
`

// settings holds more questions, about the running sshd: its listener is among our ancestors, and
// has its command line in its title. If the account may not ask sshd for its settings, it reads the
// file, up to the first Match block. PAM's service has the name of sshd; it reads one level of
// included files.
const settings = `[ -n "$SSH_ORIGINAL_COMMAND" ] && echo "@forced"
for f in ~/.ssh/rc /etc/ssh/sshrc; do [ -e "$f" ] && echo "@rc $f" && break; done
grep -q '^[^#]' /etc/hosts.allow /etc/hosts.deny 2>/dev/null && echo "@wrapped"
d=/usr/sbin/sshd c=/etc/ssh/sshd_config p=$PPID
while [ "${p:-1}" -gt 1 ]; do
t=$(tr '\0' ' ' 2>/dev/null </proc/$p/cmdline)
case $t in
sshd*": "*" [listener]"*) set -- $t; d=$2; t=$(expr "$t" : '.* -f *\([^ ]*\)') && c=$t; break;;
esac
p=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$p/status 2>/dev/null)
done
{ "$d" -T -f "$c" -C "user=$(id -un),host=$a,addr=$a" 2>/dev/null || cat /etc/ssh/sshd_config.d/*.conf "$c" 2>/dev/null | sed '/^[[:blank:]]*[Mm]atch[[:blank:]]/q'; } |
sed -n 's/^[[:blank:]]*\([A-Za-z]\{6,\}[[:blank:]]\)/@sshd \1/p'
cd /etc/pam.d 2>/dev/null && for f in "${d##*/}" $(sed -n 's/^@include[[:blank:]]*//p; s/^[a-z]*[[:blank:]]*\(include\|substack\)[[:blank:]]*//p' "${d##*/}"); do
[ -f "$f" ] && sed -n 's/^-\{0,1\}\(account\|session\)[[:blank:]].*[[:blank:]]\(pam_[a-z0-9_]*\.so\)/@pam \1 \2/p' "$f"
done
`

// lookups holds questions that each begin with their own line, so that the time between two lines
// is that of a question. The name of an address is looked up again, as sshd does (auth.c,
// remote_hostname). They come last, because they may take longer than there is time.
const lookups = `echo "@account"; getent passwd "$(id -un)" >/dev/null 2>&1
echo "@reverse"; set -- $(getent hosts "$a" 2>/dev/null); [ $# -lt 2 ] || getent ahosts "$2" >/dev/null 2>&1
`

// Questions for slow sessions: the modules that PAM runs; and for slow commands: the login shell
// once more, since bash reads its files again for the first shell of a connection (SHLVL).
const (
	greeting = `echo "@greeted"; for f in /etc/update-motd.d/*; do [ -x "$f" ] && "$f" </dev/null >/dev/null 2>&1; done
`
	starting = `echo "@started"; SHLVL=0 "$SHELL" -c : </dev/null >/dev/null 2>&1
`
)

// worthAsking is the time of opening a session, or of running a command, from which on these are
// asked.
const worthAsking = 100 * time.Millisecond

// askLimit is the time for a host to answer all questions.
const askLimit = 20 * time.Second

// ask runs the questions by a command line that starts a shell; nil where there are no answers.
func (p *Patient) ask(ctx context.Context, argv []string) *Server {
	p.Progress("the facts that the server knows")
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(p.facts.Logins.questions(3))
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	s := hear(out)
	_ = cmd.Wait()
	return s
}

// questions returns a script with all questions that logins give rise to. Names are looked up some
// times.
func (l Logins) questions(times int) string {
	asked := questions + settings
	for _, slow := range []struct {
		figure   stats.Interval
		question string
	}{{l.Session, greeting}, {l.Command, starting}} {
		if time.Duration(slow.figure.Lo) > worthAsking {
			asked += slow.question
		}
	}
	return asked + strings.Repeat(lookups, times) + "echo @end\n"
}

// hear parses the answers of the server's shell, a line for each fact, and takes the time of each;
// nil where there are no answers.
func hear(answers io.Reader) *Server {
	s, lines := &Server{Settings: map[string]string{}, Modules: map[string][]string{}}, bufio.NewScanner(answers)
	took := map[string][]time.Duration{}
	before, since := "", time.Now()
	for lines.Scan() {
		now := time.Now()
		took[before] = append(took[before], now.Sub(since))
		word, rest, _ := strings.Cut(lines.Text(), " ")
		before, since = word, now
		switch word {
		case "@client":
			s.Client = rest
		case "@shell":
			s.Shell = rest
		case "@groups":
			s.Groups = strings.Fields(rest)
		case "@motd":
			s.Motd = append(s.Motd, rest)
		case "@forced":
			s.Forced = true
		case "@rc":
			s.RC = rest
		case "@wrapped":
			s.Wrapped = true
		case "@sshd":
			name, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if name = strings.ToLower(name); s.Settings[name] == "" { // the first one counts
				s.Settings[name] = value
			}
		case "@pam":
			kind, module, _ := strings.Cut(rest, " ")
			s.Modules[kind] = append(s.Modules[kind], module)
		}
	}
	s.Account, s.Reverse = middle(took["@account"]), middle(took["@reverse"])
	s.Greeted, s.Started = middle(took["@greeted"]), middle(took["@started"])
	if s.Client == "" {
		return nil
	}
	return s
}

// oldGroups compares the groups of sessions over the user's own master with those of a new login.
func (p *Patient) oldGroups(ctx context.Context) {
	m, s := p.facts.Master, p.facts.Server
	if m == nil || m.State != Live || s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, p.SSH.Path, "-F", "none", "-S", m.Path, "-o", "ControlMaster=no", "-o", "ProxyCommand=false", "-o", "BatchMode=yes", "--", p.facts.Host, "id -G")
	cmd.Stdout = &out
	if proc.Run(cmd) != nil {
		return
	}
	if groups := strings.Fields(out.String()); fmt.Sprint(groups) != fmt.Sprint(s.Groups) && numbers(groups) {
		m.Old, m.New = groups, s.Groups
	}
}

// numbers reports whether all words are numbers: a login may print more.
func numbers(words []string) bool {
	for _, w := range words {
		if _, err := strconv.Atoi(w); err != nil {
			return false
		}
	}
	return len(words) > 0
}
