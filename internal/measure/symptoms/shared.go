//go:build linux

package symptoms

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/measure/handshake"
	"sshpace/internal/sys/proc"
)

// masterLimit is how long a live master may take to say so.
const masterLimit = 2 * time.Second

// masters looks at what ControlPath leads to.
func (p *Patient) masters(ctx context.Context) error {
	m := p.facts.Master
	if m == nil { // no socket is there
		return nil
	}
	p.Progress("the ControlMaster at " + m.Path)
	limited, cancel := context.WithTimeout(ctx, masterLimit)
	defer cancel()
	began := time.Now()
	cmd := exec.CommandContext(limited, p.SSH.Path, "-F", "none", "-S", m.Path, "-O", "check", "--", p.facts.Host)
	err := proc.Run(cmd)
	m.Waited, m.PID = time.Since(began), holder(m.Path)
	switch {
	case err == nil:
		m.State = Live
	case limited.Err() != nil && ctx.Err() == nil:
		m.State = Hung
	case !listens(m.Path):
		m.State = Dead
	default:
		p.facts.Master = nil // it answered, and it is no master
	}
	return nil
}

// shared opens a connection that sessions share, and asks what is to be known
// there: what a session costs, and what the server says of itself.
func (p *Patient) shared(ctx context.Context) error {
	if p.facts.Own || !p.due(ctx) { // nobody's shell is behind a private server
		return nil
	}
	p.Progress("sessions over one connection")
	ends := p.ends()
	ends.Destination.Options = append(quiet, p.Destination.Options...)
	master, err := ends.StartMaster(ctx)
	p.last = time.Now()
	if err != nil {
		return nil // this server, or this client, has none: nothing is known then
	}
	defer master.Close()
	p.made++
	session := ends.SessionCase(master).Argv
	var took []time.Duration
	for range p.Logins {
		l, err := ends.Watch(ctx, session)
		if err != nil {
			return nil
		}
		took = append(took, l.Whole)
	}
	p.facts.Sharing.Session = handshake.FigureOf(took)
	argv := session("/dev/null")
	p.facts.Server = p.ask(ctx, append(argv[:len(argv)-1], "exec sh"))
	p.oldGroups(ctx)
	return nil
}

// quiet are the settings of a master that nobody else is to notice.
var quiet = []string{"-o", "ClearAllForwardings=yes", "-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "PermitLocalCommand=no", "-o", "UpdateHostKeys=no"}

// questions are for a POSIX shell on the host. Each begins with a line of its
// own, so that the time between two lines is what the question took. A name that
// an address has is looked up again, as sshd does (auth.c, remote_hostname).
const questions = `a=${SSH_CONNECTION%% *}
echo "@client $a"
echo "@shell $SHELL"
echo "@groups $(id -G)"
for f in /etc/update-motd.d/*; do [ -x "$f" ] && echo "@motd $f"; done
for i in 1 2 3; do
echo "@account"; getent passwd "$(id -un)" >/dev/null 2>&1
echo "@reverse"; set -- $(getent hosts "$a" 2>/dev/null); [ $# -lt 2 ] || getent ahosts "$2" >/dev/null 2>&1
done
`

// greeting is one more, where a session takes long to open: what PAM runs meanwhile.
const greeting = `echo "@greeted"; for f in /etc/update-motd.d/*; do [ -x "$f" ] && "$f" </dev/null >/dev/null 2>&1; done
`

// slowSession is how long a session takes to open, at least, that is asked about.
const slowSession = 100 * time.Millisecond

// askLimit is how long a host may take to answer all questions.
const askLimit = 20 * time.Second

// ask runs the questions by a command line that starts a shell; nil where there
// are no answers.
func (p *Patient) ask(ctx context.Context, argv []string) *Server {
	p.Progress("what the server says of itself")
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	asked := questions
	if time.Duration(p.facts.Logins.Session.Lo) > slowSession {
		asked += greeting
	}
	cmd.Stdin = strings.NewReader(asked + "echo @end\n")
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	s := &Server{}
	s.hear(bufio.NewScanner(out))
	_ = cmd.Wait()
	if s.Client == "" {
		return nil
	}
	return s
}

// hear takes the answers down.
func (s *Server) hear(lines *bufio.Scanner) {
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
		}
	}
	s.Account, s.Reverse = handshake.FigureOf(took["@account"]), handshake.FigureOf(took["@reverse"])
	s.Greeted = handshake.FigureOf(took["@greeted"])
}

// oldGroups compares the groups of sessions over the user's own master with
// those of a new login.
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

// numbers tells whether all words are numbers: a login may print more.
func numbers(words []string) bool {
	for _, w := range words {
		if _, err := strconv.Atoi(w); err != nil {
			return false
		}
	}
	return len(words) > 0
}
