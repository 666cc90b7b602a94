// Package loopback is the private server of a measurement: a loopback port, a host key and a user
// key that exist for one run only, and one server process per connection, started as inetd would.
// That keeps every cost of the real server (each OpenSSH server re-executes itself per connection
// anyway), leaves no daemon that could outlive us, and makes the CPU time of the whole process tree
// of a connection exact, because we wait for it.
package loopback

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/sys/safedir"
)

// Keys are the files of a run's key pairs.
type Keys struct {
	HostKey        string // private host key
	Identity       string // private user key
	AuthorizedKeys string
	KnownHosts     string // pins the host key under Alias, and its address
}

// Alias is the name of the host key in KnownHosts.
const Alias = "sshpace-private"

// anyPort names the host key for a client that knows no alias.
const anyPort = "[127.0.0.1]:*"

// MakeKeys writes one-run Ed25519 key pairs into dir.
func MakeKeys(dir *safedir.Workdir) (Keys, error) {
	keys := Keys{dir.File("host_key"), dir.File("user_key"), dir.File("authorized_keys"), dir.File("known_hosts")}
	var lines []string
	for _, name := range []string{"host_key", "user_key"} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return keys, err
		}
		signer, err := WriteKey(dir, name, private)
		if err != nil {
			return keys, err
		}
		lines = append(lines, string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	}
	err := dir.WriteFile("authorized_keys", []byte(lines[1]), 0o600)
	return keys, errors.Join(err, dir.WriteFile("known_hosts", []byte(Alias+","+anyPort+" "+lines[0]), 0o600))
}

// WriteKey writes a private key to a file (0600).
func WriteKey(dir *safedir.Workdir, name string, k crypto.Signer) (ssh.Signer, error) {
	block, err := ssh.MarshalPrivateKey(k, "sshpace one-run key")
	if err != nil {
		return nil, err
	}
	if err := dir.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewSignerFromSigner(k)
}
