package dial

import (
	"io"

	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/transport"
)

// events translates the steps of a login into those of ssh's log.
var events = map[transport.Step]openssh.Kind{
	transport.StepDial:     openssh.Connecting,
	transport.StepConnect:  openssh.Connected,
	transport.StepVersion:  openssh.ServerVersion,
	transport.StepKexInit:  openssh.KexInit,
	transport.StepKexReply: openssh.HostKeySeen,
	transport.StepHostKey:  openssh.NewKeysSent,
	transport.StepNewKeys:  openssh.NewKeys,
	transport.StepService:  openssh.AuthStarted,
	transport.StepQuery:    openssh.KeyAccepted,
	transport.StepAuth:     openssh.LoggedIn,
	transport.StepExec:     openssh.CommandAccepted,
	transport.StepExit:     openssh.ExitStatus,
}

// LogSteps writes the steps of a login, each as it happens.
func LogSteps(w io.Writer) func(transport.Step) {
	return func(s transport.Step) { openssh.WriteEvent(w, openssh.Event{Kind: events[s]}) }
}
