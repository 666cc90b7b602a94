package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/transport"
	"sshpace/internal/sys/tcp"
)

// ClientParams of a native connection.
type ClientParams struct {
	Address    string // host:port
	User       string
	Identity   string // file of the private key
	KnownHosts string // file that pins the one host key
	Want       alg.Suite
	Command    string
	Log        io.Writer // takes the debug lines of ssh -v that sshpace reads
}

// Offer returns what the native client can negotiate, which the native server can, too.
func Offer() alg.Offer {
	kexes, ciphers, macs := transport.Algorithms()
	return alg.Offer{Ciphers: ciphers, MACs: macs, Kex: kexes, HostKeys: []string{ssh.KeyAlgoED25519}}
}

// RunClient runs a command as `ssh` would: standard streams connected, exit code returned. It is a
// separate program so that its CPU time does not mix with sshpace's.
func RunClient(ctx context.Context, p ClientParams, stdin io.Reader, stdout, stderr io.Writer) (exit int, err error) {
	client, err := dial(ctx, p)
	if err != nil {
		fmt.Fprintln(p.Log, err)
		return 255, err
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return 255, err
	}
	session.Stdout, session.Stderr = stdout, stderr
	in, err := session.StdinPipe()
	if err != nil {
		return 255, err
	}
	if err := session.Start(p.Command); err != nil {
		return 255, err
	}
	go func() {
		_, _ = io.Copy(in, stdin)
		in.Close()
	}()
	var exited *ssh.ExitError
	switch err := session.Wait(); {
	case err == nil:
		return 0, nil
	case errors.As(err, &exited):
		return exited.ExitStatus(), nil
	default:
		return 255, err
	}
}

func dial(ctx context.Context, p ClientParams) (*ssh.Client, error) {
	config, key, err := clientConfig(p)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c, err := transport.Handshake(tcp.Quick(conn), config)
	if err == nil {
		err = c.Authenticate(transport.Login{User: p.User, Keys: []ssh.MultiAlgorithmSigner{key}, Direct: true})
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	logNegotiation(p.Log, c)
	return c.Mux(p.User).Client(), nil
}

// clientConfig returns the configuration of the connection, and the key to log in with.
func clientConfig(p ClientParams) (*transport.Config, ssh.MultiAlgorithmSigner, error) {
	identity, err := os.ReadFile(p.Identity)
	if err != nil {
		return nil, nil, err
	}
	signer, err := ssh.ParsePrivateKey(identity)
	if err != nil {
		return nil, nil, fmt.Errorf("user key: %w", err)
	}
	key, ok := signer.(ssh.MultiAlgorithmSigner)
	if !ok {
		return nil, nil, fmt.Errorf("user key: no signature is known for a key of type %s", signer.PublicKey().Type())
	}
	known, err := os.ReadFile(p.KnownHosts)
	if err != nil {
		return nil, nil, err
	}
	_, _, hostKey, _, _, err := ssh.ParseKnownHosts(bytes.TrimSpace(known))
	if err != nil {
		return nil, nil, fmt.Errorf("host key: %w", err)
	}
	pinned := ssh.FixedHostKey(hostKey)
	return &transport.Config{
		Version:  transport.Version,
		HostKeys: []string{hostKey.Type()}, HostKey: func(key ssh.PublicKey) error { return pinned("", nil, key) },
		Ciphers: only(p.Want.Cipher), MACs: only(p.Want.MAC), KeyExchanges: only(p.Want.Kex),
	}, key, nil
}

// only restricts a list to one name, or leaves the default where none is given.
func only(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// logNegotiation writes the negotiation as events, so that one reader serves both engines.
func logNegotiation(log io.Writer, c *transport.Conn) {
	write := func(kind openssh.Kind, text string) { openssh.WriteEvent(log, openssh.Event{Kind: kind, Text: text}) }
	write(openssh.ServerVersion, strings.TrimPrefix(c.Greeting().Version, "SSH-2.0-"))
	a := c.Negotiated()
	write(openssh.KexAlgorithm, a.KeyExchange)
	write(openssh.HostKeyType, a.HostKey)
	for _, direction := range []struct {
		kind openssh.Kind
		d    ssh.DirectionAlgorithms
	}{{openssh.ServerToClient, a.Read}, {openssh.ClientToServer, a.Write}} {
		mac := direction.d.MAC
		if mac == "" {
			mac = "<implicit>"
		}
		write(direction.kind, fmt.Sprintf("cipher: %s MAC: %s compression: none", direction.d.Cipher, mac))
	}
	write(openssh.NewKeys, "")
	write(openssh.LoggedIn, "")
}

// ClientMain is the client program of --engine native: address, user, identity, known hosts, log,
// cipher, MAC, kex, command.
func ClientMain(ctx context.Context, args []string) (int, error) {
	if len(args) != 9 {
		return 2, errors.New("native-client: want 9 arguments")
	}
	log, err := os.OpenFile(args[4], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 255, err
	}
	defer log.Close()
	return RunClient(ctx, ClientParams{
		Address: args[0], User: args[1], Identity: args[2], KnownHosts: args[3], Log: log,
		Want: alg.Suite{Cipher: args[5], MAC: args[6], Kex: args[7]}, Command: args[8],
	}, os.Stdin, os.Stdout, os.Stderr)
}
