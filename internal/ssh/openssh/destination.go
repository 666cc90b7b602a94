package openssh

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
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
	// Master is the socket of the user's own master for the host, if one lives; "" if none does.
	Master string
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

// Over returns the destination for a session over the master at a socket. Where that gives none ssh
// would log in by itself: a ProxyCommand that fails prevents it.
func (d Destination) Over(socket string) Destination {
	d = d.Replacing("ControlPath", conf.Quote(strings.ReplaceAll(socket, "%", "%%")))
	d.Way = "exit 1"
	return d
}

// Unkept returns the sentence that no master of the user's lives; "" if one does.
func (d Destination) Unkept() string {
	if d.Master == "" {
		return "no connection to the host is kept: sshpace keep -w HOST keeps one"
	}
	return ""
}

// Verbose makes ssh log more, as -v does.
func (d Destination) Verbose() Destination {
	d.Extra = slices.Concat([]string{"-v"}, d.Extra)
	return d
}

// The options that take a value.
const (
	WithValue    = "BbcDEeFIiJLlmOoPpQRSWw" // of ssh(1)
	ScpWithValue = "cDFiJloPSX"             // of scp(1)
)

// SplitOptions separates the switches before an option: -Cp22 is -C and -p22.
func SplitOptions(arg, withValue string) []string {
	var options []string
	for len(arg) > 2 && arg[0] == '-' && strings.IndexByte("-"+withValue, arg[1]) < 0 {
		options = append(options, arg[:2])
		arg = "-" + arg[2:]
	}
	if len(arg) > 2 { // ssh_config(5) allows the blank in "-o Name=value", ssh's getopt in all
		arg = arg[:2] + strings.TrimLeft(arg[2:], " \t")
	}
	return append(options, arg)
}

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
