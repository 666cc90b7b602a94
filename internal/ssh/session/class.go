package session

import (
	"cmp"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
)

// classes translates causes for a run.
var classes = map[openssh.Cause]fleet.Class{
	openssh.HostKeyChanged:        fleet.HostKeyChanged,
	openssh.HostKeyRevoked:        fleet.HostKeyRevoked,
	openssh.RevocationsUnreadable: fleet.HostKeyRevoked,
	openssh.HostKeyWeak:           fleet.HostKeyWeak,
	openssh.HostKeyUnknown:        fleet.HostKeyUnknown,
	openssh.Unresolved:            fleet.NameFailed,
	openssh.Denied:                fleet.AuthFailed,
	openssh.TooManyKeys:           fleet.AuthFailed,
	openssh.Expired:               fleet.AuthFailed,
	openssh.BadConfiguration:      fleet.Local,
	openssh.NoAlgorithm:           fleet.NoCommonAlgo,
	openssh.Prohibited:            fleet.Refused,
	openssh.ConnectionRefused:     fleet.Refused,
	openssh.Unroutable:            fleet.Unroutable,
	openssh.TimedOut:              fleet.TimedOut,
	openssh.NotSSH:                fleet.NotSSH,
	openssh.Throttled:             fleet.Throttled,
	openssh.Penalized:             fleet.Throttled,
	openssh.NoVersion:             fleet.Throttled,
	openssh.SessionRefused:        fleet.ExecRefused,
	openssh.Corrupted:             fleet.Lost,
	openssh.HungUp:                fleet.Throttled, // before the version line, where nothing has run
}

// ClassOf translates a cause for a run, for every engine: an unknown one means that the connection
// was lost.
func ClassOf(c openssh.Cause) fleet.Class { return cmp.Or(classes[c], fleet.Lost) }

// Said returns a server's text before it ended a login, to append to the reason: often it is the
// only one, such as "System is booting up".
func Said(text string) string {
	const most = 500
	if text = termsafe.OneLine(text); text == "" {
		return ""
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return "; the server said: " + text
}
