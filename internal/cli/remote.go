package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"

	"sshpace/internal/base/shell"
	"sshpace/internal/measure/drive"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
)

// openRemote logs in once, with the user's own settings, to find out what the
// host offers: the debug output of that login holds the server's lists, so that
// no probe has to fail its way through them.
func (s *station) openRemote(ctx context.Context, sys System, p stationParams, rig drive.Rig) (err error) {
	if err := s.chooseClient(ctx, p); err != nil {
		return err
	}
	remote := &drive.Remote{Rig: rig, SSH: s.ssh}
	if remote.Destination, remote.Env, err = route.ThroughJumps(ctx, p.connection.params(sys), s.ssh, p.destination, p.connect); err != nil {
		return err
	}
	look, err := remote.Look(ctx)
	if err != nil {
		return s.remoteError(err)
	}
	s.remote, s.server, s.target = look.Offer, record.ServerRemote, p.destination.Label
	s.environment.Server, s.environment.ServerBanner = look.Version, look.Version
	s.environment.ServerMachine, s.environment.StrictKex = look.Machine, &look.Strict
	if endpoint, err := s.ssh.Endpoint(ctx, p.destination); err == nil {
		s.environment.AddressCheck = addressCheck(endpoint)
	}
	if !look.Proc {
		s.note("the host has no /proc that we can read", "server costs are not measured", "")
	}
	s.driver = remote
	return nil
}

// addressCheck tells two addresses apart, all but one in 65,536, without naming
// either: a result holds no addresses.
func addressCheck(e openssh.Endpoint) string {
	sum := sha256.Sum256([]byte(net.JoinHostPort(e.Hostname, e.Port)))
	return hex.EncodeToString(sum[:2])
}

// hostHints say what to do about a host that cannot be measured. %s is how ssh
// reaches it.
var hostHints = map[record.Outcome]string{
	record.HostKey:    "log in once with ssh %s and compare the fingerprint",
	record.Denied:     "sshpace asks for no password: make ssh -o BatchMode=yes %s true work first (agent or key file)",
	record.Refused:    "look whether an sshd listens there, and wait if it limits connections (MaxStartups, PerSourcePenalties): ssh -v %s",
	record.TimedOut:   "look whether the host is up, or allow more time with --connect-timeout: ssh -v %s",
	record.Unresolved: "check the name, or give it a HostName in your ssh_config: ssh -G %s",
	record.Broken:     "see what ssh says: ssh -v %s true",
	record.Mismatched: "see what ssh says: ssh -v %s true",
}

// remoteError explains why the station cannot measure.
func (s *station) remoteError(err error) error {
	var loginErr *drive.LoginError
	if errors.As(err, &loginErr) {
		return withHint(err, "make sure that your account may log in by sshd (shell, password field, folder modes), or try --server native")
	}
	var hostErr *drive.HostError
	if !errors.As(err, &hostErr) {
		return err
	}
	e := &Error{What: fmt.Sprintf("%s: %s", s.way.Label, hostErr.Detail)}
	if hint, ok := hostHints[hostErr.Outcome]; ok {
		e.Hint = fmt.Sprintf(hint, shell.Line(slices.Concat(s.way.Options, []string{s.way.Host})...))
	}
	if hostErr.Outcome == record.HostKey && hostErr.KeyFile != "" {
		e.Hint = s.changedKeyHint(hostErr.KeyFile)
	}
	return e
}

// changedKeyHint says what to do about a host whose key is not the one in file.
func (s *station) changedKeyHint(file string) string {
	name := s.way.Host
	if endpoint, err := s.ssh.Endpoint(context.Background(), s.way); err == nil {
		name = endpoint.KnownAs
	}
	return "find out why the key changed: it may be an attack; only then forget the old one: ssh-keygen " +
		shell.Line("-R", name, "-f", file)
}
