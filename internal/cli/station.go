package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/drive"
	"sshpace/internal/measure/hostinfo"
	"sshpace/internal/measure/lab"
	"sshpace/internal/measure/loopback"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/wire"
	"sshpace/internal/sys/ownport"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/workdir"
)

// privateTarget is the label of the private server.
const privateTarget = "loopback"

// station is a client and a server that are ready to be measured.
type station struct {
	driver      driver
	target      string // label
	engine      record.Engine
	server      record.ServerKind
	environment record.Environment
	ssh         openssh.Program // the client, unless it is the built-in one
	client      alg.Offer       // what either side can do
	remote      alg.Offer
	findings    []record.Finding
	rig         drive.Rig
	way         openssh.Destination // how ssh, scp and sftp reach the server; not with the built-in client
	close       func() error
}

// driver carries plans out.
type driver interface {
	lab.Sitter
	Capacity() int // connections that can be open at a time
}

// stationParams are the flags that decide what a station is made of.
type stationParams struct {
	ssh, sshd   string            // paths; "" to search
	engine      record.Engine     // "" to choose
	server      record.ServerKind // "" to choose; not remote
	data        string
	connect     time.Duration
	destination openssh.Destination // Host "" for the private server
	connection  connectionFlags     // that the destination was made with
}

// loadLook is how long the machine's load is looked at before a run.
const loadLook = 100 * time.Millisecond

// openStation starts what has to run and finds out what both sides can do.
func openStation(ctx context.Context, sys System, p stationParams) (s *station, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := privateDir(sys)
	if err != nil {
		return nil, err
	}
	spawner := proc.NewSpawner()
	s = &station{close: func() error { spawner.Close(); return dir.Close() }}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.environment = hostinfo.Describe(loadLook)
	rig := drive.Rig{Dir: dir, Spawner: spawner, Flow: helperArgs(self, "flow"), Data: p.data, Connect: p.connect}
	s.rig, s.way = rig, p.destination
	if p.destination.Host != "" {
		return s, s.openRemote(ctx, sys, p, rig)
	}
	return s, s.openPrivate(ctx, p, rig, self)
}

// openPrivate starts the private server.
func (s *station) openPrivate(ctx context.Context, p stationParams, rig drive.Rig, self string) error {
	login, named := accountName(ctx)
	if !named {
		p.engine, p.server = cmp.Or(p.engine, record.EngineNative), cmp.Or(p.server, record.ServerNative)
		s.note("the user "+login+" has no name on this machine: the built-in client and server stand in for OpenSSH, which refuses such users",
			"costs and speeds are those of Go's SSH, not of OpenSSH", "add the user to /etc/passwd, or run as another one")
	}
	keys, err := loopback.MakeKeys(rig.Dir)
	if err != nil {
		return err
	}
	if err := s.chooseClient(ctx, p); err != nil {
		return err
	}
	argv, err := s.chooseServer(ctx, p, rig.Dir, keys, login, self)
	if err != nil {
		return err
	}
	server, err := loopback.Start(argv, rig.Spawner, rig.Dir)
	if err != nil {
		return err
	}
	stop := s.close
	s.close = func() error { return errors.Join(server.Close(), stop()) }
	host, port := server.Address()
	if err := s.greet(ctx, net.JoinHostPort(host, port), server, p.connect); err != nil {
		return err
	}
	s.target = privateTarget
	s.driver = &drive.Private{Rig: rig, Server: server, Client: s.clientCommand(p, keys, host, port, login, self)}
	return nil
}

// accountName is the name of the user's own account; named is false where the
// user has none, as in many containers, and the name is the number. Name services
// other than /etc/passwd are asked by id, for this program has no libc to ask.
func accountName(ctx context.Context) (name string, named bool) {
	uid := strconv.Itoa(os.Getuid())
	if me, err := user.LookupId(uid); err == nil {
		return me.Username, true
	}
	if name, err := exec.CommandContext(ctx, "id", "-un").Output(); err == nil {
		return strings.TrimSpace(string(name)), true
	}
	return uid, false
}

// chooseClient finds the client and what it can do. Where ssh is missing, the
// built-in client stands in for it on loopback.
func (s *station) chooseClient(ctx context.Context, p stationParams) error {
	if p.engine == record.EngineNative {
		s.nativeClient()
		return nil
	}
	private := p.destination.Host == ""
	ssh, err := openssh.FindClient(ctx, p.ssh)
	var missing *openssh.NotFoundError
	if errors.As(err, &missing) && p.engine == "" && private {
		s.note("no ssh is installed: the built-in client stands in for it",
			"client costs and speeds are those of Go's SSH, not of OpenSSH", "install openssh-client, or name its path with --ssh")
		s.nativeClient()
		return nil
	}
	if err != nil {
		hint := "install openssh-client, or name its path with --ssh"
		if private {
			hint += "; --engine native measures the built-in client"
		}
		return withHint(err, hint)
	}
	s.engine, s.ssh = record.EngineOpenSSH, ssh
	s.environment.Client, s.environment.ClientPath, s.environment.Crypto = ssh.Version, ssh.Path, ssh.Crypto
	s.client, err = ssh.Query(ctx)
	return err
}

func (s *station) nativeClient() {
	s.engine, s.client = record.EngineNative, wire.Offer()
	s.environment.Client, s.environment.Crypto = "sshpace native (x/crypto/ssh)", "Go crypto"
}

// chooseServer returns the command line that serves one connection: sshd, or
// the built-in server where sshd is not to be had.
func (s *station) chooseServer(ctx context.Context, p stationParams, dir *workdir.Dir, keys loopback.Keys, login, self string) ([]string, error) {
	native := append(helperArgs(self, "native-server"), keys.HostKey, keys.AuthorizedKeys, dir.Path)
	if p.server == record.ServerNative {
		return s.nativeServer(native), nil
	}
	sshd, err := openssh.FindServer(ctx, p.sshd)
	var missing *openssh.NotFoundError
	if errors.As(err, &missing) && p.server == "" {
		s.note("no sshd is installed: the built-in server stands in for it",
			"server costs and speeds are those of Go's SSH, not of OpenSSH", "install openssh-server, or name its path with --sshd")
		return s.nativeServer(native), nil
	}
	if err != nil {
		return nil, withHint(err, "install openssh-server, name its path with --sshd, or use --server native")
	}
	config := openssh.ServerConfig{
		HostKey: keys.HostKey, AuthorizedKeys: keys.AuthorizedKeys, Home: dir.Path, User: login, StrictModes: dir.Strict, Offer: s.client,
	}
	if openssh.Locked(login) {
		config.PAM = true
		s.note("the account "+login+" is locked, so the private sshd uses PAM, as sshd does by default on most systems",
			"logins take longer than without", "")
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		s.note(err.Error(), "", "")
	}
	if _, err := sshd.Validate(ctx, config, dir.File("sshd_config")); err != nil {
		return nil, withHint(err, "try --server native, or another sshd with --sshd")
	}
	s.server = record.ServerOpenSSH
	s.environment.Server, s.environment.ServerPath = sshd.Version, sshd.Path
	return sshd.ServeOne(dir.File("sshd_config")), nil
}

func (s *station) nativeServer(argv []string) []string {
	s.server = record.ServerNative
	s.environment.Server = "sshpace native (x/crypto/ssh)"
	return argv
}

// greet asks the running server what it offers, and waits for it that long.
func (s *station) greet(ctx context.Context, address string, server *loopback.Server, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	greeting, err := wire.Probe(ctx, address)
	if err != nil {
		if tail := server.LogTail(); tail != "" {
			err = fmt.Errorf("%w (server: %s)", err, tail)
		}
		return fmt.Errorf("the private server does not answer: %w", err)
	}
	server.Fresh(false)
	s.remote, s.environment.ServerBanner = greeting.Offer, greeting.Version
	if !greeting.StrictKex || s.clientStrict(ctx) {
		s.environment.StrictKex = &greeting.StrictKex
	}
	return nil
}

// clientStrict finds out from the client's own greeting whether it does strict
// key exchange, the remedy for Terrapin. Only a yes is a yes.
func (s *station) clientStrict(ctx context.Context) bool {
	if s.engine == record.EngineNative {
		return true // golang.org/x/crypto/ssh does since v0.17.0
	}
	listener, err := ownport.Listen()
	if err != nil {
		return false
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(ctx, greetingLimit)
	defer cancel()
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	cmd := s.ssh.Greet(ctx, host, port)
	if cmd.Start() != nil {
		return false
	}
	greeting, err := wire.AwaitGreeting(ctx, listener)
	cancel()
	_ = cmd.Wait()
	return err == nil && greeting.StrictKex
}

// greetingLimit is how long the client may take to say who it is.
const greetingLimit = 5 * time.Second

// clientCommand returns what runs a command on the private server.
func (s *station) clientCommand(p stationParams, keys loopback.Keys, host, port, login, self string) func(alg.Suite, string, string) []string {
	if s.engine == record.EngineNative {
		return func(want alg.Suite, log, remote string) []string {
			return append(helperArgs(self, "native-client"), net.JoinHostPort(host, port), login, keys.Identity, keys.KnownHosts, log,
				want.Cipher, want.MAC, want.Kex, remote)
		}
	}
	destination := s.ssh.Private(host, port, login, keys.Identity, keys.KnownHosts)
	s.way = destination
	return func(want alg.Suite, log, remote string) []string {
		return s.ssh.Command(destination, want, log, p.connect, remote)
	}
}

func (s *station) note(what, why, fix string) {
	s.findings = append(s.findings, record.Finding{What: what, Why: why, Fix: fix})
}

// oneSided lists the algorithms that only one side has, with the reason why
// they are not measured.
func (s *station) oneSided() []record.Finding {
	var findings []record.Finding
	for _, kind := range []alg.Kind{alg.Cipher, alg.MAC, alg.Kex} {
		for _, side := range []struct {
			names []string
			why   string
		}{
			{s.client.Without(s.remote, kind), "only the client has it: the server does not offer it"},
			{s.remote.Without(s.client, kind), "only the server has it: the client was built without it"},
		} {
			for _, name := range side.names {
				findings = append(findings, record.Finding{What: fmt.Sprintf("%s %s is not measured", kind, name), Why: side.why})
			}
		}
	}
	return findings
}

// shared is what both sides have, in the client's order.
func (s *station) shared() (alg.Offer, error) {
	offer := s.client.Intersect(s.remote)
	for kind, names := range map[alg.Kind][]string{alg.Cipher: offer.Ciphers, alg.Kex: offer.Kex} {
		if len(names) == 0 {
			return offer, &Error{
				What: fmt.Sprintf("client and server have no %s in common", kind),
				Hint: fmt.Sprintf("the client has %s; the server offers %s", strings.Join(s.client.List(kind), ","), strings.Join(s.remote.List(kind), ",")),
			}
		}
	}
	return offer, nil
}
