package dial

import (
	"io"

	"sshpace/internal/ssh/transport"
)

// words are what ssh -vv says at the steps of a login (clientloop.c, kex.c,
// packet.c, sshconnect.c, sshconnect2.c).
var words = map[transport.Step]string{
	transport.StepDial:     "debug1: Connecting to ",
	transport.StepConnect:  "debug1: Connection established.",
	transport.StepVersion:  "debug1: Remote protocol version 2.0",
	transport.StepKexInit:  "debug1: SSH2_MSG_KEXINIT received",
	transport.StepKexReply: "debug1: Server host key: ",
	transport.StepHostKey:  "debug1: SSH2_MSG_NEWKEYS sent",
	transport.StepNewKeys:  "debug1: SSH2_MSG_NEWKEYS received",
	transport.StepService:  "debug1: SSH2_MSG_SERVICE_ACCEPT received",
	transport.StepQuery:    "debug1: Server accepts key: ",
	transport.StepAuth:     "debug1: Authentication succeeded (publickey).",
	transport.StepExec:     "debug2: exec request accepted on channel 0",
	transport.StepExit:     "debug1: client_input_channel_req: channel 0 rtype exit-status",
}

// LogSteps writes the steps of a login in ssh's words, each as it happens, so
// that what reads those can read ours. What cannot be written is left out.
func LogSteps(w io.Writer) func(transport.Step) {
	return func(s transport.Step) { _, _ = io.WriteString(w, words[s]+"\n") }
}
