package forkssh

import (
	"context"
	"errors"
	"os"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/knownhosts/check"
	"sshpace/internal/ssh/openssh"
)

// failures are what the causes mean to a run; without a line: the connection was
// lost.
var failures = map[openssh.Cause]struct {
	class fleet.Class
	hint  string
}{
	openssh.HostKeyChanged:        {fleet.HostKeyChanged, "compare the key with the machine's owner before removing the old line"},
	openssh.HostKeyRevoked:        {fleet.HostKeyRevoked, check.RevokedHint},
	openssh.RevocationsUnreadable: {fleet.HostKeyRevoked, "the file of RevokedHostKeys cannot be read: no key is accepted until it can"},
	openssh.HostKeyWeak:           {fleet.HostKeyWeak, "the RSA key of the server is shorter than RequiredRSASize: give it an Ed25519 host key or a longer one"},
	openssh.HostKeyUnknown:        {fleet.HostKeyUnknown, check.UnknownHint},
	openssh.Unresolved:            {fleet.NameFailed, "check the spelling"},
	openssh.Denied:                {fleet.AuthFailed, ""},
	openssh.TooManyKeys:           {fleet.AuthFailed, "name one key with -i and -o IdentitiesOnly=yes"},
	openssh.BadConfiguration:      {fleet.Local, ""},
	openssh.NoAlgorithm:           {fleet.NoCommonAlgo, "sshpace config shows what is offered, of which the server has none"},
	openssh.Prohibited:            {fleet.Refused, "the jump host forbids forwarding there (AllowTcpForwarding, PermitOpen)"},
	openssh.ConnectionRefused:     {fleet.Refused, ""},
	openssh.Unroutable:            {fleet.Unroutable, ""},
	openssh.TimedOut:              {fleet.TimedOut, ""},
	openssh.NotSSH:                {fleet.NotSSH, ""},
	openssh.Throttled:             {fleet.Throttled, fleet.ManyLogins},
	openssh.Penalized:             {fleet.Throttled, fleet.ManyLogins},
	openssh.NoVersion:             {fleet.Throttled, fleet.ManyLogins},
	openssh.SessionRefused:        {fleet.ExecRefused, fleet.NoSession},
	openssh.HungUp:                {fleet.Throttled, ""}, // before the version line; see failure
}

// outcome puts together what the log and the exit code say.
func (l *log) outcome(ctx context.Context, state *os.ProcessState) fleet.Outcome {
	o := fleet.Outcome{Engine: engineName, Addr: l.addr, Exit: exitCode(state), Signal: signalOf(state)}
	o.Ran = l.ran(o.Exit)
	switch {
	case errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout):
		l.late(&o)
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

// ran tells whether the command has run. ssh logs that it sends the command before it
// does so: a log without that line proves that nothing has run. No log, as under ssh -q,
// proves nothing. Output proves something over a ControlMaster only, where ssh does not
// log the answer; else it may be ssh's own.
func (l *log) ran(exit int) fleet.Ran {
	switch {
	case l.status || l.signal || (exit > 0 && exit < 255) || (exit == 0), l.accepted, l.shared && l.sent && l.attempt.Talked():
		return fleet.RanYes
	case l.sent, !l.spoke:
		return fleet.RanUnknown
	}
	return fleet.RanNo
}

// failure explains ssh's own 255.
func (l *log) failure(o *fleet.Outcome) {
	causes := l.messages
	if l.proxy != "" {
		causes = openssh.BehindProxy(causes)
	}
	o.Exit, o.Class = -1, fleet.Lost
	o.Err = termsafe.Line(strings.TrimPrefix(text.LastLine(strings.Join(causes, "\n")), "ssh: "))
	if o.Err == "" {
		o.Err = "ssh ended with status 255"
	}
	cause, _ := openssh.CauseOf(causes)
	if f, known := failures[cause]; known {
		o.Class, o.Hint = f.class, f.hint
	}
	if o.Class == fleet.Throttled && l.other {
		o.Class, o.Hint = fleet.NotSSH, fleet.WrongPort
	}
	switch { // the server has answered with no, unless that was a jump host
	case o.Class == fleet.ExecRefused && l.loggedIn:
		o.Ran = fleet.RanNo
	case o.Class == fleet.ExecRefused:
		o.Class, o.Hint = fleet.Refused, ""
	}
	early := l.attempt.Phase() <= fleet.PhaseKex
	if o.Class == fleet.Throttled && !early {
		o.Class, o.Hint = fleet.Lost, ""
		if l.attempt.Phase() == fleet.PhaseAuth {
			o.Class = fleet.AuthFailed
		}
	}
	if why := openssh.ProxyReason(l.proxy, l.before); o.Class == fleet.Throttled && l.proxy != "" && why != "" {
		o.Class, o.Hint = fleet.Lost, "run the ProxyCommand by hand to see what is wrong"
		o.Err += "; the way there said: " + termsafe.Line(why)
	}
	o.SlowDown = o.Class == fleet.Throttled && o.Ran == fleet.RanNo
}

// late explains that the command did not start in time, and in which phase that was.
func (l *log) late(o *fleet.Outcome) {
	during := map[fleet.Phase]string{
		fleet.PhaseKex: "banner or key exchange", fleet.PhaseHostkey: "login", fleet.PhaseAuth: "login", fleet.PhaseExec: "the opening of a session",
	}[l.attempt.Phase()]
	switch {
	case during == "":
		during = "connect"
	case l.sent:
		during = "the start of the command"
	}
	o.Class, o.Exit, o.Signal = fleet.TimedOut, -1, ""
	o.Err, o.Hint = "timed out during "+during, "--connect-timeout allows more time"
	if o.Ran != fleet.RanNo {
		o.Err += "; it may still run there"
	}
}
