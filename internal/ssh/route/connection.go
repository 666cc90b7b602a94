package route

import (
	"fmt"
	"strconv"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// Connection is the flags of ssh(1) that every command with a connection takes,
// with the same meaning.
type Connection struct {
	Config     string   // -F
	Settings   []string // -o
	Port       uint16   // -p
	User       string   // -l
	Identities []string // -i
	Jump       string   // -J
	IPv4, IPv6 bool     // -4, -6
}

// Check refuses flags that contradict each other, and an unsafe user before any ssh
// sees it: older ones hand it to the shells of "Match exec".
func (c Connection) Check() error {
	if c.IPv4 && c.IPv6 {
		return fault.Usage("leave one of them out", "-4 and -6 exclude each other")
	}
	if err := c.params().CheckUser(); err != nil {
		return ConfigError(err)
	}
	return nil
}

// Options are the arguments that pass the flags on to ssh.
func (c Connection) Options() []string {
	var argv []string
	add := func(flag, value string) {
		if value != "" {
			argv = append(argv, flag, value)
		}
	}
	add("-F", c.Config)
	add("-l", c.User)
	if c.Port != 0 {
		add("-p", strconv.Itoa(int(c.Port)))
	}
	add("-J", c.Jump)
	for _, setting := range c.Settings { // behind the flags, which win here
		add("-o", setting)
	}
	for _, identity := range c.Identities {
		add("-i", identity)
	}
	if c.IPv4 {
		argv = append(argv, "-4")
	}
	if c.IPv6 {
		argv = append(argv, "-6")
	}
	return argv
}

// params are the flags in the terms of package sshconf.
func (c Connection) params() conf.Params {
	p := conf.Params{File: c.Config, Options: c.Settings, Port: int(c.Port), User: c.User, Jump: c.Jump, Identities: c.Identities}
	switch {
	case c.IPv6:
		p.AddressFamily = "inet6"
	case c.IPv4:
		p.AddressFamily = "inet"
	}
	return p
}

// Destination checks the host that the user named and adds the connection flags, which win over what the host's text says: ssh takes the first, and options
// usually stand before the host.
func (c Connection) Destination(text string) (openssh.Destination, error) {
	if err := c.Check(); err != nil {
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
	options := c.Options()
	if h.User != "" {
		options = append(options, "-l", h.User)
	}
	if h.Port != 0 {
		options = append(options, "-p", fmt.Sprint(h.Port))
	}
	return openssh.Destination{Host: h.Destination(), Label: h.Exact(), Options: options}, nil
}
