package route

import (
	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// CheckFlags refuses flags that contradict each other, and an unsafe user before any ssh sees it:
// older ones hand it to the shells of "Match exec".
func CheckFlags(c conf.Flags) error {
	if c.IPv4 && c.IPv6 {
		return fault.Usage("leave one of them out", "-4 and -6 exclude each other")
	}
	if err := (conf.Params{Flags: c}).CheckUser(); err != nil {
		return ConfigError(err)
	}
	return nil
}

// Destination checks the host that the user named and adds the connection flags, which win over
// those in the host's text: ssh takes the first, and options usually stand before the host.
func Destination(c conf.Flags, text string) (openssh.Destination, error) {
	if err := CheckFlags(c); err != nil {
		return openssh.Destination{}, err
	}
	h, err := host.Parse(text)
	if err != nil {
		return openssh.Destination{}, fault.Usage("write it as user@host, user@host:port or ssh://user@host:port", "%s", err)
	}
	if c.User != "" {
		if err := host.CheckUser(c.User); err != nil {
			return openssh.Destination{}, fault.Usage("name a login with -l", "-l: %s", err)
		}
	}
	if c.User == "" && !c.Sets(conf.User) {
		c.User = h.User
	}
	if c.Port == 0 && !c.Sets(conf.Port) {
		c.Port = h.Port
	}
	return openssh.Destination{Host: h.Destination(), Label: h.Exact(), Flags: c}, nil
}
