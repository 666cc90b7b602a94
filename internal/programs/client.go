//go:build linux

package programs

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/wire"
	"sshpace/internal/sys/proc"
)

// Client is an SSH client program.
type Client struct {
	Name    string // such as "openssh 9.2p1"
	Maker   string // of the table
	Path    string
	Copies  bool      // files by SFTP: it runs no commands
	Chooses string    // which of its algorithms can be set: "cipher, MAC, kex"; "" none
	Offer   alg.Offer // its default offer, in its first packet

	order func(ctx context.Context, o Order) (process, error)
}

// clientRow is a line of the table of clients.
type clientRow struct {
	maker, program, pkg string
	copies              bool
	chooses             string
	mark                string   // in its answer, before its version
	version             []string // arguments that make it answer
	order               func(b *Setup, path string) func(ctx context.Context, o Order) (process, error)
}

// clientRows lists the known clients. OpenSSH and its offspring have their own table.
var clientRows = []clientRow{
	{"dropbear", "dbclient", "dropbear-bin", false, "cipher, MAC", "Dropbear v", []string{"-V"}, dropbearOrder},
	{"putty", "plink", "putty-tools", false, "family of ciphers", "Release ", []string{"-V"}, plinkOrder},
	{"psftp", "psftp", "putty-tools", true, "family of ciphers", "Release ", []string{"-V"}, psftpOrder},
	{"curl", "curl", "curl", true, "", "libssh2/", []string{"-V"}, curlOrder},
}

// opensshClients are programs that take the options of OpenSSH's ssh.
var opensshClients = []struct{ maker, program, pkg string }{
	{"openssh", "ssh", "openssh-client"},
	{legacy, "ssh1", "openssh-client-ssh1"}, // 7.5, the last with arcfour, blowfish and cast128
	{"hpn-ssh", "hpnssh", "hpnssh"},
}

// legacy is the maker's name of the last OpenSSH that has arcfour, blowfish and cast128. OpenSSL 3
// keeps these apart, in a provider that must be requested (OSSL_PROVIDER-legacy(7)).
const (
	legacy     = "openssh-legacy"
	oldCiphers = "openssl_conf = init\n[init]\nproviders = all\n[all]\ndefault = on\nlegacy = on\n[on]\nactivate = 1\n"
)

// native is the maker's name of our own client and server; oldCipherServer that of our server for
// Blowfish and CAST-128, which is paired for these alone.
const (
	native          = "sshpace"
	oldCipherServer = "sshpace-old"
)

// clients finds the clients that are installed here, and asks each for its offer. builds are the
// user's own ssh. missing holds known clients that are not available, with the reason.
func (b *Setup) clients(ctx context.Context, builds []Build) (found []Client, missing map[string]error) {
	missing = map[string]error{}
	add := func(c Client, err error) {
		if err == nil {
			c.Offer, err = b.greet(ctx, c, alg.Suite{})
		}
		if err != nil {
			missing[c.Maker] = err
			return
		}
		found = append(found, c)
	}
	for _, build := range builds {
		c, err := b.openssh(ctx, "openssh", build.Path)
		c.Name = cmp.Or(build.Name, c.Name)
		add(c, err)
	}
	for _, row := range opensshClients {
		path := proc.Find(row.program)
		if path == "" {
			missing[row.maker] = absent(row.program, row.pkg)
			continue
		}
		if given(builds, path) {
			continue
		}
		c, err := b.openssh(ctx, row.maker, path)
		add(c, err)
	}
	for _, row := range clientRows {
		c, err := b.client(ctx, row)
		add(c, err)
	}
	add(Client{Name: native, Maker: native, Path: b.Helper("")[0], Chooses: "cipher, MAC, kex", order: b.nativeOrder}, nil)
	unlike(found, func(c *Client) (*string, string) { return &c.Name, c.Path })
	return found, missing
}

func (b *Setup) client(ctx context.Context, row clientRow) (Client, error) {
	c := Client{Maker: row.maker, Path: proc.Find(row.program), Copies: row.copies, Chooses: row.chooses}
	if c.Path == "" {
		return c, absent(row.program, row.pkg)
	}
	answer, _ := proc.Ask(ctx, append([]string{c.Path}, row.version...)...)
	version := versionIn(answer, row.mark)
	if version == "" {
		return c, errors.New(row.program + " does not say that it is of " + row.maker)
	}
	c.Name = row.maker + " " + version
	if row.maker == "curl" {
		c.Name = "curl, libssh2 " + version
	}
	c.order = row.order(b, c.Path)
	return c, nil
}

// greetingLimit is the time for a program to identify itself.
const greetingLimit = 10 * time.Second

// greet lets a client connect to a port that answers with nothing but a first packet, and reads its
// offer there when it is told to use want.
func (b *Setup) greet(ctx context.Context, c Client, want alg.Suite) (alg.Offer, error) {
	greeting, err := wire.AwaitGreeting(ctx, greetingLimit, func(ctx context.Context, host, port string) error {
		p, err := c.order(ctx, Order{Host: host, Port: port, Want: want, From: os.DevNull, Remote: "true", To: os.DevNull})
		if err != nil {
			return err
		}
		return errors.New(b.dismiss(ctx, p))
	})
	return greeting.Offer, err
}

// dismiss runs a client that must fail, and returns its output.
func (b *Setup) dismiss(ctx context.Context, p process) string {
	runner := b.runner(nil)
	_, err := runner.Run(ctx, p)
	if err == nil {
		return "it ended without a connection"
	}
	return err.Error()
}

func (b *Setup) openssh(ctx context.Context, maker, path string) (Client, error) {
	c := Client{Maker: maker, Path: path, Chooses: "cipher, MAC, kex"}
	program, err := openssh.FindClient(ctx, path)
	if err != nil {
		return c, err
	}
	c.Name = opensshName(maker, program.Version)
	c.order = func(_ context.Context, o Order) (process, error) {
		to := program.Private(o.Host, o.Port, b.User, b.Keys.Identity, b.Keys.KnownHosts)
		client := process{Argv: append(program.Leading(to, o.Want, b.Connect), "--", to.Host, o.Remote)}
		if maker != legacy {
			return client, nil
		}
		config := b.Dir.File("openssl.cnf")
		client.Env = []string{"OPENSSL_CONF=" + config}
		return client, put(config, oldCiphers)
	}
	return c, nil
}

// opensshName is a short name from a version line such as "OpenSSH_9.2p1 Debian-2" or
// "OpenSSH_9.8p1 hpn18.4.1".
func opensshName(maker, version string) string {
	_, number, _ := strings.Cut(version, "SSH_")
	number, rest, _ := strings.Cut(number, " ")
	if strings.Contains(strings.ToLower(version), "hpn") {
		return "hpn-ssh " + strings.TrimSpace(number+" "+rest)
	}
	return strings.TrimSuffix(maker, "-legacy") + " " + number
}

func (b *Setup) nativeOrder(_ context.Context, o Order) (process, error) {
	argv := append(b.Helper("native-client"), net.JoinHostPort(o.Host, o.Port), b.User, b.Keys.Identity, b.Keys.KnownHosts,
		b.Dir.File("native.log"), o.Want.Cipher, o.Want.MAC, o.Want.Kex, o.Remote)
	return process{Argv: argv}, nil
}

// dropbearOrder: dbclient looks for known_hosts below $HOME, and there for the name of the host
// without the port.
func dropbearOrder(b *Setup, path string) func(context.Context, Order) (process, error) {
	return func(ctx context.Context, o Order) (process, error) {
		key := b.Dir.File("user_key.dropbear")
		if err := b.convert(ctx, key, "dropbearconvert", "openssh", "dropbear", b.Keys.Identity, key); err != nil {
			return process{}, err
		}
		home, err := b.directory("dbclient", ".ssh")
		if err != nil {
			return process{}, err
		}
		hostKey, err := b.hostKey()
		if err != nil {
			return process{}, err
		}
		known := o.Host + " " + string(ssh.MarshalAuthorizedKey(hostKey))
		argv := []string{path, "-T", "-p", o.Port, "-l", b.User, "-i", key}
		for _, pair := range [][2]string{{"-c", o.Want.Cipher}, {"-m", o.Want.MAC}} {
			if pair[1] != "" {
				argv = append(argv, pair[:]...)
			}
		}
		argv = append(argv, o.Host, o.Remote)
		return process{Argv: argv, Env: []string{"HOME=" + filepath.Dir(home)}}, put(filepath.Join(home, "known_hosts"), known)
	}
}

// curlOrder: curl does not let anybody choose algorithms, reads no configuration where -q comes
// first, and pins a host key by its hash.
func curlOrder(b *Setup, path string) func(context.Context, Order) (process, error) {
	return func(_ context.Context, o Order) (process, error) {
		print, err := b.fingerprint()
		if err != nil {
			return process{}, err
		}
		sum, err := base64.RawStdEncoding.DecodeString(print)
		if err != nil {
			return process{}, err
		}
		text, err := os.ReadFile(b.Keys.AuthorizedKeys)
		if err == nil {
			err = put(b.Keys.Identity+".pub", string(text))
		}
		return process{Argv: []string{
			path, "-q", "-sS", "--user", b.User + ":", "--key", b.Keys.Identity, "--pubkey", b.Keys.Identity + ".pub",
			"--hostpubsha256", base64.StdEncoding.EncodeToString(sum), "-T", o.From, "sftp://" + net.JoinHostPort(o.Host, o.Port) + "/" + o.To,
		}, Env: []string{"HOME=" + b.Dir.Path}}, err
	}
}

// negotiated returns the suite that a client and a server agree on when the client is told to use
// want (RFC 4253 §7.1: the first of the client's names that the server has).
func (b *Setup) negotiated(ctx context.Context, c Client, s Server, want alg.Suite) (alg.Suite, error) {
	offer, err := b.greet(ctx, c, want)
	if err != nil {
		return alg.Suite{}, err
	}
	common := offer.Intersect(s.Offer)
	if len(common.Ciphers) == 0 || len(common.Kex) == 0 || len(common.MACs) == 0 && !alg.IsAEAD(common.Ciphers[0]) {
		return alg.Suite{}, lacking(common, s.Offer, want)
	}
	return alg.NewSuite(common.Ciphers[0], firstOf(common.MACs), common.Kex[0]), nil
}

// lacking names the algorithms that a client and a server do not share.
func lacking(common, server alg.Offer, want alg.Suite) error {
	switch {
	case len(common.Ciphers) == 0 && slices.Contains(server.Ciphers, want.Cipher):
		return fmt.Errorf("the client has no %s", want.Cipher)
	case len(common.Ciphers) == 0 && want.Cipher != "":
		return fmt.Errorf("the server has no %s", want.Cipher)
	case len(common.Ciphers) == 0:
		return nothingCommon(alg.Cipher, server)
	case len(common.Kex) == 0:
		return nothingCommon(alg.Kex, server)
	}
	return nothingCommon(alg.MAC, server)
}

func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
