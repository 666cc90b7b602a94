package forkssh

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
)

// log reads what ssh itself says, at LogLevel DEBUG1: how far it came, and why
// it failed.
type log struct {
	attempt *fleet.Attempt
	done    sync.WaitGroup

	// written by the reader, read after done
	status   bool // the server told an exit status
	signal   bool // the server told an exit signal
	sent     bool // the command was sent
	other    bool // the peer sent a line that is neither SSH's nor sshd's
	proxy    bool // a proxy command was started
	master   bool // a ControlPersist master stays behind
	messages []string
	addr     string
}

const (
	debugPrefix = "debug1: "
	maxLine     = 4 << 10
	maxMessages = 16
)

// open makes the pipe. The name is one under which another process of the same
// user can open it: ssh closes all inherited descriptors at its start, so it
// cannot be handed one. Where there is no /proc the name is "", and only the
// exit code is known.
func (l *log) open() (path string, closeLog func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("log of ssh: %w", err)
	}
	path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.Fd())
	if _, err := os.Stat(path); err != nil {
		r.Close()
		w.Close()
		return "", func() {}, nil
	}
	l.done.Go(func() { l.read(r) })
	return path, func() { w.Close(); l.wait(r) }, nil
}

// wait ends the reader. A ControlPersist master may keep the pipe open.
func (l *log) wait(r *os.File) {
	r.SetReadDeadline(time.Now().Add(strayGrace))
	l.done.Wait()
	r.Close()
}

func (l *log) read(r io.Reader) {
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			l.line(strings.TrimRight(string(line), "\r\n"))
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// marks are the lines of ssh -v that say how far it is (10.5 and 9.2 alike).
var marks = []struct {
	prefix string
	phase  fleet.Phase
}{
	{"Connecting to ", fleet.PhaseConnect},
	{"Connection established", fleet.PhaseKex},
	{"Server host key: ", fleet.PhaseHostkey},
	{"SSH2_MSG_SERVICE_ACCEPT received", fleet.PhaseAuth},
	{"mux_client_request_session: master session id", fleet.PhaseExec},
	{"Sending command: ", fleet.PhaseExec},
}

func (l *log) line(s string) {
	debug, ok := strings.CutPrefix(s, debugPrefix)
	if !ok {
		if len(l.messages) < maxMessages && !noise(s) {
			l.messages = append(l.messages, s)
		}
		return
	}
	for _, m := range marks {
		if strings.HasPrefix(debug, m.prefix) {
			if m.phase == fleet.PhaseKex {
				l.attempt.Alive()
			}
			l.attempt.Reached(m.phase)
			l.sent = l.sent || m.phase == fleet.PhaseExec
			l.address(debug)
		}
	}
	l.banner(debug)
	l.master = l.master || strings.HasPrefix(debug, "control_persist_detach: ")
	l.proxy = l.proxy || strings.HasPrefix(debug, "Executing proxy ")
	if strings.HasPrefix(debug, "client_input_channel_req: channel ") {
		l.status = l.status || strings.Contains(debug, " rtype exit-status ")
		l.signal = l.signal || strings.Contains(debug, " rtype exit-signal ")
	}
}

// banner looks at a line that came before the version line. sshd itself sends
// one when it turns a connection away.
func (l *log) banner(s string) {
	_, rest, ok := strings.Cut(s, "kex_exchange_identification: banner line ")
	_, text, cut := strings.Cut(rest, ": ")
	if ok && cut && !strings.HasPrefix(text, "Exceeded MaxStartups") && !strings.HasPrefix(text, "Not allowed at this time") {
		l.other = true
	}
}

// address reads "Connecting to NAME [ADDRESS] port N."
func (l *log) address(s string) {
	rest, ok := strings.CutPrefix(s, "Connecting to ")
	_, rest, open := strings.Cut(rest, "[")
	addr, rest, closed := strings.Cut(rest, "] port ")
	if ok && open && closed {
		if strings.Contains(addr, ":") {
			addr = "[" + addr + "]"
		}
		l.addr = addr + ":" + strings.TrimSuffix(rest, ".")
	}
}

// noise is what ssh says without anything being wrong.
func noise(s string) bool {
	for _, p := range []string{"Warning: Permanently added ", "Authenticated to ", "OpenSSH_", "Transferred: ", "Bytes per second: ", "Pseudo-terminal "} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return strings.HasPrefix(s, "** ") || strings.TrimSpace(s) == ""
}

const revokedHint = "do not log in: whoever holds a revoked key may pose as the server; give the server a new host key"

// failures are ssh's own words, in the order in which they are looked for.
var failures = []struct {
	text  string
	class fleet.Class
	hint  string
}{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", fleet.HostKeyChanged, "compare the key with the machine's owner before removing the old line"},
	{"REVOKED HOST KEY", fleet.HostKeyRevoked, revokedHint},
	{" revoked by file ", fleet.HostKeyRevoked, revokedHint}, // RevokedHostKeys
	{"Error checking host key ", fleet.HostKeyRevoked, "the file of RevokedHostKeys cannot be read: no key is accepted until it can"},
	{"Bad server host key: Invalid key length", fleet.HostKeyWeak, "the RSA key of the server is shorter than RequiredRSASize: give it an Ed25519 host key or a longer one"},
	{"Host key verification failed", fleet.HostKeyUnknown, "add the host's key to known_hosts, or use --accept-new"},
	{"No matching host key fingerprint", fleet.HostKeyUnknown, ""},
	{"Could not resolve hostname", fleet.NameFailed, "check the spelling"},
	{"Unable to negotiate with", fleet.NoCommonAlgo, ""},
	{"Permission denied (", fleet.AuthFailed, ""},
	{"Too many authentication failures", fleet.AuthFailed, "name one key with -i and -o IdentitiesOnly=yes"},
	{"Connection refused", fleet.Refused, ""},
	{"No route to host", fleet.Unroutable, ""},
	{"Network is unreachable", fleet.Unroutable, ""},
	{"timed out", fleet.TimedOut, ""},
	{"kex_exchange_identification: banner line contains invalid characters", fleet.NotSSH, ""},
	{"no SSH identification", fleet.NotSSH, ""},
	{"kex_exchange_identification:", fleet.Throttled, "the server limits logins (MaxStartups, PerSourcePenalties); try a smaller -f"},
	{"Connection reset by", fleet.Throttled, ""},
	{"Connection closed by", fleet.Throttled, ""},
	{"Broken pipe", fleet.Throttled, ""}, // the peer was gone before our first line
	{"Bad owner or permissions", fleet.Local, ""},
	{"terminating, ", fleet.Local, ""},
}

// outcome puts together what the log and the exit code say.
func (l *log) outcome(ctx context.Context, state *os.ProcessState) fleet.Outcome {
	o := fleet.Outcome{Engine: engineName, Addr: l.addr, Exit: exitCode(state), Signal: signalOf(state)}
	o.Ran = l.ran(o.Exit)
	switch {
	case ctx.Err() != nil:
		c := cancelled(ctx, o.Ran)
		o.Class, o.Err, o.Hint, o.Exit, o.Signal = c.Class, c.Err, c.Hint, -1, ""
	case o.Signal != "":
		o.Class, o.Err = fleet.Lost, "ssh was killed by signal "+o.Signal
	case l.status || (o.Exit >= 0 && o.Exit != 255):
		l.attempt.Reached(fleet.PhaseExit)
	case l.signal:
		l.attempt.Reached(fleet.PhaseExit)
		o.Exit, o.Signal = -1, "?" // ssh does not tell which
	default:
		l.failure(&o)
	}
	return o
}

func (l *log) ran(exit int) fleet.Ran {
	switch {
	case l.status || l.signal || (exit > 0 && exit < 255) || (exit == 0), l.sent && l.attempt.Talked():
		return fleet.RanYes
	case l.sent:
		return fleet.RanUnknown
	}
	return fleet.RanNo
}

// causes are the messages without those that only say that the proxy has ended,
// if there are others: its own, such as those of the ssh to a jump host.
func (l *log) causes() []string {
	causes := slices.DeleteFunc(slices.Clone(l.messages), func(s string) bool {
		return strings.HasPrefix(s, "kex_exchange_identification: Connection closed by") || strings.HasSuffix(s, " UNKNOWN port 65535") ||
			strings.HasSuffix(s, " UNKNOWN port 65535: Broken pipe")
	})
	if l.proxy && len(causes) > 0 {
		return causes
	}
	return l.messages
}

// failure explains ssh's own 255.
func (l *log) failure(o *fleet.Outcome) {
	o.Exit, o.Class = -1, fleet.Lost
	all := strings.Join(l.causes(), "\n")
	o.Err = termsafe.Line(strings.TrimPrefix(string(lastLine([]byte(all))), "ssh: "))
	if o.Err == "" {
		o.Err = "ssh ended with status 255"
	}
	for _, f := range failures {
		if strings.Contains(all, f.text) {
			o.Class, o.Hint = f.class, f.hint
			break
		}
	}
	if o.Class == fleet.Throttled && l.other {
		o.Class, o.Hint = fleet.NotSSH, "check the port; this is not an SSH server"
	}
	early := l.attempt.Phase() <= fleet.PhaseKex
	if o.Class == fleet.Throttled && !early {
		o.Class, o.Hint = fleet.Lost, ""
		if l.attempt.Phase() == fleet.PhaseAuth {
			o.Class = fleet.AuthFailed
		}
	}
	if o.Class == fleet.Throttled && l.proxy && l.attempt.Talked() { // before the login nobody else can have
		o.Class, o.Hint = fleet.Lost, "run the ProxyCommand by hand to see what is wrong"
	}
	o.SlowDown = o.Class == fleet.Throttled && o.Ran == fleet.RanNo
}
