package sshtest

import (
	"slices"
	"strings"

	"sshpace/internal/ssh/sshconf"
)

// shown leaves out lines of ssh -G that say the same in other words, or that no one asks for.
func shown(name, rest string) (key, value string, ok bool) {
	k, known := sshconf.KeywordOf(name)
	if !known || slices.Contains(notCompared, k) {
		return "", "", false
	}
	switch rest {
	case "yes":
		rest = "true"
	case "no":
		rest = "false"
	}
	return k.String(), rest, true
}

// notCompared are keywords whose value ssh -G prints in a form of its own,
// and that no engine of ours looks at.
var notCompared = []sshconf.Keyword{
	sshconf.LocalForward, sshconf.RemoteForward, sshconf.DynamicForward, sshconf.PermitRemoteOpen, sshconf.IPQoS,
	sshconf.TunnelDevice, sshconf.SyslogFacility, sshconf.LogVerbose, sshconf.StreamLocalBindMask,
	sshconf.GSSAPIKexAlgorithms, sshconf.XAuthLocation, sshconf.IgnoreUnknown,
}

// Table is a configuration as ssh -G shows it: the values of each keyword.
type Table map[string][]string

// TableOfDump reads the output of ssh -G.
func TableOfDump(text string) Table {
	t := Table{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if key, value, ok := shown(name, rest); ok {
			t[key] = append(t[key], value)
		}
	}
	return t
}

// commas are the keywords whose words ssh -G joins by commas.
var commas = []sshconf.Keyword{
	sshconf.Ciphers, sshconf.MACs, sshconf.KexAlgorithms, sshconf.HostKeyAlgorithms,
	sshconf.PubkeyAcceptedAlgorithms, sshconf.HostbasedAcceptedAlgorithms, sshconf.CASignatureAlgorithms,
}

// TableOf shows a resolution as ssh -G would.
func TableOf(r *sshconf.Resolved) Table {
	t := Table{}
	for k, v := range r.Settings() {
		separator := " "
		if slices.Contains(commas, k) {
			separator = ","
		}
		rests := []string{strings.Join(v.Args, separator)}
		if k == sshconf.SetEnv {
			rests = v.Args
		}
		for _, rest := range rests {
			if key, value, ok := shown(k.String(), rest); ok {
				t[key] = append(t[key], value)
			}
		}
	}
	if len(t["ProxyJump"]) > 0 {
		delete(t, "ProxyCommand") // ssh -G prints one of the two
	}
	return t
}
