package openssh

import (
	"strconv"
	"time"

	"sshpace/internal/alg"
)

// Destination is how the user's own ssh reaches a host.
type Destination struct {
	Host    string   // name or address, already checked
	Label   string   // as the user named it, for records
	Options []string // the user's -F -o -p -l -i -J -4 -6, in order
}

// isolation keeps what must never happen in a measurement from happening,
// whatever the user's configuration says. The first value of an option wins
// (ssh_config(5)), so these stand before everything else.
var isolation = []string{
	"IgnoreUnknown=StdinNull,SessionType,ForkAfterAuthentication,WarnWeakCrypto,ObscureKeystrokeTiming,EnableEscapeCommandline",
	"ControlMaster=no", "ControlPath=none", "ControlPersist=no",
	"BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no",
	"ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "Tunnel=no", "PermitLocalCommand=no",
	"RemoteCommand=none", "RequestTTY=no", "StdinNull=no", "SessionType=default", "ForkAfterAuthentication=no",
	"ConnectionAttempts=1", "Compression=no", "VisualHostKey=no", "WarnWeakCrypto=no", "EscapeChar=none",
}

// Command is the command line that runs remote on a destination under the
// wanted suite. Its debug output goes to log: with -E the output of a jump
// host's ssh stays out of it.
func (p Program) Command(d Destination, want alg.Suite, log string, connect time.Duration, remote string) []string {
	argv := []string{p.Path, "-v", "-E", log}
	for _, option := range isolation {
		argv = append(argv, "-o", option)
	}
	argv = append(argv, "-o", "ConnectTimeout="+strconv.Itoa(max(1, int(connect.Seconds()))))
	for _, pair := range [][2]string{{"Ciphers", want.Cipher}, {"MACs", want.MAC}, {"KexAlgorithms", want.Kex}, {"HostKeyAlgorithms", want.HostKey}} {
		if pair[1] != "" {
			argv = append(argv, "-o", pair[0]+"="+pair[1])
		}
	}
	argv = append(argv, d.Options...)
	return append(argv, "--", d.Host, remote)
}

// PrivateOptions are the options of a connection to the private server: no
// configuration file, one key, one pinned host key.
func PrivateOptions(address, port, user, identity, knownHosts string) Destination {
	options := []string{"-F", "/dev/null", "-p", port, "-l", user, "-i", identity}
	for _, option := range []string{
		"IdentitiesOnly=yes", "IdentityAgent=none", "PreferredAuthentications=publickey",
		"PubkeyAcceptedAlgorithms=ssh-ed25519", "HostKeyAlgorithms=ssh-ed25519",
		"UserKnownHostsFile=" + knownHosts, "GlobalKnownHostsFile=none", "HostKeyAlias=sshpace-private",
		"CheckHostIP=no", "IPQoS=none", "GSSAPIAuthentication=no", "SendEnv=none",
	} {
		options = append(options, "-o", option)
	}
	return Destination{Host: address, Options: options}
}
