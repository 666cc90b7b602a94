package openssh

import (
	"slices"
	"time"

	"sshpace/internal/ssh/conf"
)

// Destination is where ssh goes, and how it gets there.
type Destination struct {
	Host  string // name or address, already checked
	Label string // as the user named it, for records
	// Connect is ssh's ConnectTimeout, which holds for each address; 0: that of whoever goes there.
	Connect time.Duration
	// Flags are the user's flags, with user and port where the host's text has them.
	conf.Flags
	Extra []string // further ones that have no keyword, such as -v
	// Way is the ProxyCommand through the jump hosts, with keys as strict as the host's own,
	// and stands in the place of Jump; Env is what it needs in the environment of ssh.
	Way string
	Env []string
	// Instead are settings that a measurement is about, such as Compression, in the
	// place of those that keep it from others; "" leaves one out.
	Instead map[string]string
}

// Options are all arguments before the host.
func (d Destination) Options() []string {
	if d.Way != "" {
		d = d.With("ProxyCommand=" + d.Way)
		d.Jump = ""
	}
	return slices.Concat(d.Extra, d.Flags.Options())
}

// Typed is what the user types after ssh to get there.
func (d Destination) Typed() []string { return append(d.Flags.Options(), d.Host) }

// With is the destination under settings that win over those of the user.
func (d Destination) With(settings ...string) Destination {
	d.Settings = slices.Concat(settings, d.Settings)
	return d
}

// Replacing has one more setting Instead.
func (d Destination) Replacing(name, value string) Destination {
	instead := map[string]string{name: value}
	for k, v := range d.Instead {
		instead[k] = v
	}
	d.Instead = instead
	return d
}

// Verbose makes ssh say more, as -v does.
func (d Destination) Verbose() Destination {
	d.Extra = slices.Concat([]string{"-v"}, d.Extra)
	return d
}
