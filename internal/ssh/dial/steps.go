package dial

import (
	"io"

	"sshpace/internal/ssh/sshlog"
	"sshpace/internal/ssh/transport"
)

// events are the steps of a login as those who read a log of ssh know them.
var events = map[transport.Step]sshlog.Kind{
	transport.StepDial:     sshlog.Connecting,
	transport.StepConnect:  sshlog.Connected,
	transport.StepVersion:  sshlog.ServerVersion,
	transport.StepKexInit:  sshlog.KexInit,
	transport.StepKexReply: sshlog.HostKeySeen,
	transport.StepHostKey:  sshlog.NewKeysSent,
	transport.StepNewKeys:  sshlog.NewKeys,
	transport.StepService:  sshlog.AuthStarted,
	transport.StepQuery:    sshlog.KeyAccepted,
	transport.StepAuth:     sshlog.LoggedIn,
	transport.StepExec:     sshlog.CommandAccepted,
	transport.StepExit:     sshlog.ExitStatus,
}

// LogSteps writes the steps of a login, each as it happens.
func LogSteps(w io.Writer) func(transport.Step) {
	return func(s transport.Step) { sshlog.Write(w, sshlog.Event{Kind: events[s]}) }
}
