package openssh

import (
	"slices"
	"time"

	"sshpace/internal/ssh/conf"
)

// Destination is the host that ssh goes to, and the route.
type Destination struct {
	Host  string // name or address, already checked
	Label string // as the user named it, for records
	// Connect is ssh's ConnectTimeout, for each address; 0: the caller's.
	Connect time.Duration
	// Flags are the user's flags, with user and port if the host's text has them.
	conf.Flags
	Extra []string // further ones that have no keyword, such as -v
	// Way is the ProxyCommand through the jump hosts, with keys as strict as the host's own, and
	// replaces Jump; Env is the environment that it needs.
	Way string
	Env []string
	// Instead holds settings under measurement, such as Compression, in place of the isolating
	// ones; "" removes one.
	Instead map[string]string
}

// Options returns all arguments before the host.
func (d Destination) Options() []string {
	if d.Way != "" {
		d = d.With("ProxyCommand=" + d.Way)
		d.Jump = ""
	}
	return slices.Concat(d.Extra, d.Flags.Options())
}

// Typed returns the words that the user types after ssh to get there.
func (d Destination) Typed() []string { return append(d.Flags.Options(), d.Host) }

// With returns the destination under settings that win over those of the user.
func (d Destination) With(settings ...string) Destination {
	d.Settings = slices.Concat(settings, d.Settings)
	return d
}

// Replacing adds one setting to Instead.
func (d Destination) Replacing(name, value string) Destination {
	instead := map[string]string{name: value}
	for k, v := range d.Instead {
		instead[k] = v
	}
	d.Instead = instead
	return d
}

// Verbose makes ssh log more, as -v does.
func (d Destination) Verbose() Destination {
	d.Extra = slices.Concat([]string{"-v"}, d.Extra)
	return d
}
