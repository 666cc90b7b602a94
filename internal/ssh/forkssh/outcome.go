package forkssh

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/session"
)

// outcome combines the log and the exit code.
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
	case l.status && l.granting() || (o.Exit >= 0 && o.Exit != 255):
		l.attempt.Reached(fleet.PhaseExit)
	case l.signal && l.granting():
		l.attempt.Reached(fleet.PhaseExit)
		o.Exit, o.Signal = -1, "?" // ssh does not say which
	default:
		l.failure(&o)
	}
	return o
}

// granting reports whether the server has granted the command, as far as ssh would log that:
// through a ControlMaster it does not. An end that a server reports before that is not the
// command's.
func (l *log) granting() bool { return l.accepted || l.shared }

// ran reports whether the command has run. ssh logs that it sends the command before it does so: a
// log without that line proves that nothing has run. No log, as under ssh -q, proves nothing.
// Output proves something over a ControlMaster only, where ssh does not log the answer; otherwise
// it may be ssh's own.
func (l *log) ran(exit int) fleet.Ran {
	switch {
	case exit >= 0 && exit < 255, l.accepted, l.shared && (l.status || l.signal || l.sent && l.attempt.Talked()):
		return fleet.RanYes
	case l.sent, !l.spoke:
		return fleet.RanUnknown
	}
	return fleet.RanNo
}

// failure fills in the outcome of an ssh that ended with its own error, exit status 255.
func (l *log) failure(o *fleet.Outcome) {
	causes := slices.Concat(l.jumps.messages, l.messages)
	if l.proxy != "" {
		causes = openssh.BehindProxy(causes)
	}
	o.Exit = -1
	o.Err = termsafe.Line(strings.TrimPrefix(text.LastLine(strings.Join(causes, "\n")), "ssh: "))
	if o.Err == "" {
		o.Err = "ssh ended with status 255"
	}
	at, server := l.at()
	cause := at.cause(causes)
	o.Err = server + o.Err
	o.Class, o.Hint = session.ClassOf(cause), cause.Advice()
	if o.Class == fleet.ExecRefused { // the server has answered with no
		o.Ran = fleet.RanNo
	}
	if why := openssh.ProxyReason(l.proxy, l.before); o.Class == fleet.Throttled && l.proxy != "" && why != "" {
		o.Class, o.Hint = fleet.Lost, "run the ProxyCommand by hand to see what is wrong"
		o.Err += "; the proxy reported: " + termsafe.Line(why)
	}
	if ended, _ := openssh.CauseOf(causes); ended == openssh.HungUp && cause == openssh.Denied {
		o.Closed = true
		if l.proxy == "" { // otherwise others may have written it
			o.Err += session.Said(l.banner())
		}
	}
	o.SlowDown = o.Class == fleet.Throttled && o.Ran == fleet.RanNo
}

// at returns the login that has failed, and its server, in words.
func (l *log) at() (login *login, server string) {
	if jump := l.jumps.stopped(); jump != nil && !l.greeted && !l.shared {
		return &l.jumps.login, "jump host " + jump.HostName() + ": "
	}
	return &l.login, ""
}

// late explains that the command did not start in time, and in which phase that was.
func (l *log) late(o *fleet.Outcome) {
	at, server := l.at()
	o.Class, o.Exit, o.Signal = fleet.TimedOut, -1, ""
	o.Err, o.Hint = server+"timed out during "+session.During(at.phase, at.greeted, l.sent), openssh.TimedOut.Advice()
	if o.Ran != fleet.RanNo {
		o.Err += "; it may still run there"
	}
}
