package openssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/sys/proc"
)

// settings returns the isolating ones that this ssh knows, as the destination wants them.
func (p Program) settings(isolating []string, d Destination) []string {
	var settings []string
	for _, setting := range p.known(isolating) {
		name, _, _ := strings.Cut(setting, "=")
		value, other := d.Instead[name]
		switch {
		case !other:
			settings = append(settings, setting)
		case value != "":
			settings = append(settings, name+"="+value)
		}
	}
	return settings
}

// isolation prevents everything that must never happen in a measurement, whatever the user's
// configuration contains. The first value of an option wins (ssh_config(5)), so these come before
// everything else. Options that the installed ssh does not know are left out. IgnoreUnknown, which
// would do the same, cannot be used: it would win over the one in the user's configuration, and
// make ssh refuse the options that that one covers.
var isolation = []string{
	"ControlMaster=no", "ControlPath=none", "ControlPersist=no",
	"BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no",
	"ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "Tunnel=no", "PermitLocalCommand=no",
	"RemoteCommand=none", "RequestTTY=no", "StdinNull=no", "SessionType=default", "ForkAfterAuthentication=no",
	"ConnectionAttempts=1", "Compression=no", "VisualHostKey=no", "WarnWeakCrypto=no", "EscapeChar=none",
}

// private are the further settings of a connection to the private server: one key, one kind of host
// key, nothing looked up.
var private = []string{
	"IdentitiesOnly=yes", "IdentityAgent=none", "PreferredAuthentications=publickey",
	"PubkeyAcceptedAlgorithms=ssh-ed25519", "HostKeyAlgorithms=ssh-ed25519",
	"GlobalKnownHostsFile=none", "HostKeyAlias=sshpace-private", "CheckHostIP=no", "GSSAPIAuthentication=no",
}

// learn finds our settings that this ssh does not know. ssh parses -o immediately, so that one
// before -V is checked and nothing else happens.
func (p *Program) learn(ctx context.Context) error {
	settings := slices.Concat(isolation, private)
	for range settings {
		argv := []string{"-F", os.DevNull}
		for _, setting := range p.known(settings) {
			argv = append(argv, "-o", setting)
		}
		_, complaint, err := p.Itself(ctx, append(argv, "-V")...)
		name := badOption(string(complaint))
		if name == "" && err != nil {
			return fmt.Errorf("%s %s -V: %w: %s", p.Path, strings.Join(argv, " "), err, bytes.TrimSpace(complaint))
		}
		if name == "" {
			return nil
		}
		p.lacks = append(p.lacks, name)
	}
	return nil
}

// Knows reports whether this ssh accepts a setting, such as "Compression=no".
func (p Program) Knows(ctx context.Context, setting string) bool {
	_, complaint, err := p.Itself(ctx, "-F", os.DevNull, "-o", setting, "-V")
	return err == nil && badOption(string(complaint)) == ""
}

// badOption returns the option that ssh or sshd complains about, as in "command-line: line 0: Bad
// configuration option: foo", or, where the build lacks something, in `line 0: Unsupported option
// "foo"`.
func badOption(complaint string) string {
	for _, words := range []string{"Bad configuration option: ", "Unsupported option "} {
		if _, rest, ok := strings.Cut(complaint, words); ok {
			name, _, _ := strings.Cut(rest, "\n")
			return strings.Trim(name, "\" \t\r")
		}
	}
	return ""
}

// known drops the settings that this ssh does not know.
func (p Program) known(settings []string) []string {
	return slices.DeleteFunc(slices.Clone(settings), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.ContainsFunc(p.lacks, func(lack string) bool { return strings.EqualFold(lack, name) })
	})
}

// Command returns the command line that runs remote on a destination under the wanted suite. Its
// debug output goes to log: with -E the output of a jump host's ssh stays out of it.
func (p Program) Command(d Destination, want alg.Suite, log string, connect time.Duration, remote string) []string {
	leading := p.Leading(d, want, connect)
	return slices.Concat(leading[:1], []string{"-v", "-E", log}, leading[1:], []string{"--", d.Host, remote})
}

// ConnectTimeout returns the option for a time: ssh takes whole seconds, at least one.
func ConnectTimeout(limit time.Duration) string {
	return "ConnectTimeout=" + strconv.Itoa(int(max((limit+time.Second-1)/time.Second, 1)))
}

// Leading returns the part of Command before the host, without the debug output.
func (p Program) Leading(d Destination, want alg.Suite, connect time.Duration) []string {
	argv := []string{p.Path}
	for _, option := range slices.Concat(p.settings(isolation, d), []string{ConnectTimeout(cmp.Or(d.Connect, connect))}, want.Settings()) {
		argv = append(argv, "-o", option)
	}
	return append(argv, d.Options()...)
}

// runLimit is the time for the command of a login that runs nothing.
const runLimit = 10 * time.Second

// Negotiate logs in to a destination by its configuration, and returns the suite that ssh agreed
// on. Servers punish connections that end before a login (sshd_config(5), PerSourcePenalties
// noauth). log receives the debug output. An error says, in ssh's words, why there was no login.
func (p Program) Negotiate(ctx context.Context, d Destination, log string, connect time.Duration) (Negotiation, error) {
	ctx, cancel := context.WithTimeout(ctx, connect+runLimit)
	defer cancel()
	r, err := Start(p.Command(d, alg.Suite{}, log, connect, "true"), d.Env, log, nil, nil, (*exec.Cmd).Start)
	if err != nil {
		return Negotiation{}, err
	}
	defer context.AfterFunc(ctx, r.Cut)()
	<-r.Ended // an account without a shell fails: the progress of the login counts
	n, err := r.Negotiation()
	switch {
	case err != nil:
		return n, err
	case !n.LoggedIn && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return n, errors.New(n.Late(connect + runLimit).Said)
	case !n.LoggedIn:
		return n, errors.New(r.Failure(n).Said)
	}
	return n, ctx.Err()
}

// Greet returns a client that connects to address and should get no further than its first packet.
// It knows no host key and has no key to log in with.
func (p Program) Greet(ctx context.Context, address, port string) *exec.Cmd {
	argv := []string{"-F", os.DevNull, "-p", port}
	for _, setting := range p.known([]string{
		"BatchMode=yes", "StrictHostKeyChecking=yes", "UserKnownHostsFile=none", "GlobalKnownHostsFile=none",
		"IdentityAgent=none", "IdentitiesOnly=yes",
	}) {
		argv = append(argv, "-o", setting)
	}
	return exec.CommandContext(ctx, p.Path, append(argv, "--", address)...)
}

// Private returns the destination of a connection to the private server: no configuration file, one
// key, one pinned host key.
func (p Program) Private(address, port, user, identity, knownHosts string) Destination {
	number, _ := strconv.ParseUint(port, 10, 16)
	return Destination{Host: address, Flags: conf.Flags{
		Config: os.DevNull, Port: uint16(number), User: user, Identities: []string{identity},
		Settings: append([]string{"UserKnownHostsFile=" + knownHosts}, p.known(private)...),
	}}
}

// MasterLimit is the time for a live master to answer.
const MasterLimit = 2 * time.Second

// Listens reports whether anybody listens at a socket, alive or not.
func Listens(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, MasterLimit)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Live returns a socket if the ControlMaster of a host answers there, and otherwise "".
func (p Program) Live(ctx context.Context, socket, host string) string {
	ctx, cancel := context.WithTimeout(ctx, MasterLimit)
	defer cancel()
	if !Listens(socket) || p.Check(ctx, socket, host) != nil {
		return ""
	}
	return socket
}

// Check asks whether the ControlMaster of a host listens at a socket.
func (p Program) Check(ctx context.Context, socket, host string) error {
	return proc.Run(exec.CommandContext(ctx, p.Path, "-F", "none", "-S", socket, "-O", "check", "--", host))
}
