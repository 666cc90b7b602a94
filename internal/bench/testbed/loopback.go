//go:build linux

package testbed

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
	"sshpace/internal/base/fault"
	"sshpace/internal/bench/drive"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/wire"
)

// openPrivate starts the private server.
func (b *Testbed) openPrivate(ctx context.Context, p Params) error {
	login, named := accountName(ctx)
	if !named {
		p.Engine, p.Server = cmp.Or(p.Engine, record.EngineNative), cmp.Or(p.Server, record.ServerNative)
		b.note("the user "+login+" has no name on this machine: the built-in client and server are used, because OpenSSH refuses such users",
			"costs and speeds are those of Go's SSH, not of OpenSSH", "add the user to /etc/passwd, or run as another one")
	}
	var err error
	if b.Keys, err = loopback.MakeKeys(p.Dir); err != nil {
		return err
	}
	if err := b.chooseClient(ctx, p); err != nil {
		return err
	}
	argv, err := b.chooseServer(ctx, p, login)
	if err != nil {
		return err
	}
	server, greeting, err := b.Serve(ctx, argv, p.Connect)
	if err != nil {
		return fmt.Errorf("the private server does not answer: %w", err)
	}
	stop := b.close
	b.close = func() error { return errors.Join(server.Close(), stop()) }
	b.greeted(ctx, greeting)
	b.Target, b.Server = record.Loopback, server
	client := b.clientCommand(p, login)
	b.Driver = &drive.Private{Rig: b.Rig, Client: client}
	return nil
}

// chooseServer returns the command line that serves one connection: sshd, or the built-in server
// where sshd is not available.
func (b *Testbed) chooseServer(ctx context.Context, p Params, login string) ([]string, error) {
	native := append(b.Helper("native-server"), b.Keys.HostKey, b.Keys.AuthorizedKeys, p.Dir.Path)
	if p.Server == record.ServerNative {
		return b.nativeServer(native), nil
	}
	sshd, err := openssh.FindServer(ctx, p.SSHD)
	if _, ok := errors.AsType[*openssh.NotFoundError](err); ok && p.Server == "" {
		b.note("no sshd is installed: the built-in server is used instead",
			"server costs and speeds are those of Go's SSH, not of OpenSSH", openssh.InstallServer)
		return b.nativeServer(native), nil
	}
	if err != nil {
		return nil, fault.WithHint(err, openssh.InstallServer+", or use --server native")
	}
	if openssh.Locked(login) {
		b.note("the account "+login+" is locked, so the private sshd uses PAM, as sshd does by default on most systems",
			"logins take longer than without", "")
	}
	if err := openssh.PreparePrivilegeSeparation(); err != nil {
		b.note(err.Error(), "", "")
	}
	b.Kind = record.ServerOpenSSH
	b.Environment.Server, b.Environment.ServerPath = sshd.Version, sshd.Path
	argv, err := b.Sshd(ctx, sshd, openssh.ServerConfig{User: login, Offer: b.Client, Everything: p.Everything}, "sshd_config")
	return argv, fault.WithHint(err, "try --server native, or another sshd with --sshd")
}

func (b *Testbed) nativeServer(argv []string) []string {
	b.Kind = record.ServerNative
	b.Environment.Server = "sshpace native (x/crypto/ssh)"
	return argv
}

// greeted records the first bytes of the running server: its offer.
func (b *Testbed) greeted(ctx context.Context, greeting wire.Greeting) {
	b.Offered, b.Environment.ServerBanner = greeting.Offer, greeting.Version
	if !greeting.StrictKex || b.clientStrict(ctx) {
		b.Environment.StrictKex = &greeting.StrictKex
	}
}

// clientStrict reads in the client's own greeting whether it does strict key exchange, the remedy
// for Terrapin. Only a yes is a yes.
func (b *Testbed) clientStrict(ctx context.Context) bool {
	if b.Engine == record.EngineNative {
		return true // golang.org/x/crypto/ssh does since v0.17.0
	}
	greeting, err := wire.AwaitGreeting(ctx, greetingLimit, func(ctx context.Context, host, port string) error {
		return b.SSH.Greet(ctx, host, port).Run()
	})
	return err == nil && greeting.StrictKex
}

// greetingLimit is the time for the client to identify itself.
const greetingLimit = 5 * time.Second

// clientCommand returns the command line that runs a command on the private server.
func (b *Testbed) clientCommand(p Params, login string) func(alg.Suite, string, string) []string {
	host, port := b.Server.Address()
	if b.Engine == record.EngineNative {
		return func(want alg.Suite, log, remote string) []string {
			return append(b.Helper("native-client"), net.JoinHostPort(host, port), login, b.Keys.Identity, b.Keys.KnownHosts, log,
				want.Cipher, want.MAC, want.Kex, remote)
		}
	}
	b.Destination = b.SSH.Private(host, port, login, b.Keys.Identity, b.Keys.KnownHosts)
	return func(want alg.Suite, log, remote string) []string {
		return b.SSH.Command(b.Destination, want, log, p.Connect, remote)
	}
}

// accountName returns the name of the user's own account; named is false where the user has none,
// as in many containers, and the name is the number. Name services other than /etc/passwd are asked
// by id, because this program has no libc to ask.
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
