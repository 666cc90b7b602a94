package openssh

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"sshpace/internal/base/alg"
)

// copyIsolation is the part of isolation that scp and sftp accept: the options that they set for
// their own ssh are left out.
var copyIsolation = []string{
	"ControlMaster=no", "ControlPath=none", "BatchMode=yes", "StrictHostKeyChecking=yes",
	"UpdateHostKeys=no", "ForwardAgent=no", "ClearAllForwardings=yes", "Tunnel=no", "PermitLocalCommand=no",
	"ConnectionAttempts=1", "Compression=no", "VisualHostKey=no", "WarnWeakCrypto=no",
}

// CopyOptions returns the arguments that lead scp or sftp to a destination under a suite, through
// this ssh. -v makes them print the negotiation.
func (p Program) CopyOptions(d Destination, want alg.Suite, connect time.Duration) []string {
	argv := []string{"-v", "-S", p.Path}
	option := func(text string) { argv = append(argv, "-o", text) }
	for _, text := range slices.Concat(p.settings(copyIsolation, d), []string{ConnectTimeout(cmp.Or(d.Connect, connect))}, want.Settings()) {
		option(text)
	}
	if d.Port != 0 { // scp and sftp spell the port with a capital
		argv = append(argv, "-P", strconv.Itoa(int(d.Port)))
	}
	if d.User != "" { // and -l limits their bandwidth
		option("User=" + d.User)
	}
	d.Port, d.User = 0, ""
	return append(argv, d.Options()...)
}
