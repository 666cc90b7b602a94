// Package loopback is the private server of a measurement: a loopback port, a
// host key and a user key that exist for one run only, and one server process
// per connection, started as inetd would. That keeps every cost of the real
// server (each OpenSSH server re-executes itself per connection anyway), leaves
// no daemon behind that could outlive us, and makes the CPU time of the whole
// process tree of a connection exact, because we are the ones who wait for it.
package loopback

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/sys/safedir"
)

// Keys are the files of a run's key pairs.
type Keys struct {
	HostKey        string // private host key
	Identity       string // private user key
	AuthorizedKeys string
	KnownHosts     string // pins the host key under Alias
}

// Alias is the name that KnownHosts files the host key under.
const Alias = "sshpace-private"

// MakeKeys writes one-run Ed25519 key pairs into dir.
func MakeKeys(dir *safedir.Workdir) (Keys, error) {
	keys := Keys{dir.File("host_key"), dir.File("user_key"), dir.File("authorized_keys"), dir.File("known_hosts")}
	hostPublic, err := writeKey(dir, "host_key")
	if err != nil {
		return keys, err
	}
	userPublic, err := writeKey(dir, "user_key")
	if err != nil {
		return keys, err
	}
	if err := dir.WriteFile("authorized_keys", []byte(userPublic), 0o600); err != nil {
		return keys, err
	}
	return keys, dir.WriteFile("known_hosts", []byte(Alias+" "+hostPublic), 0o600)
}

// writeKey makes a key pair, writes the private half to a file (0600) and returns
// the public half as an authorized_keys line.
func writeKey(dir *safedir.Workdir, name string) (public string, err error) {
	publicKey, privateKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(privateKey, "sshpace one-run key")
	if err != nil {
		return "", err
	}
	if err := dir.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
		return "", err
	}
	key, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		return "", err
	}
	return string(ssh.MarshalAuthorizedKey(key)), nil
}
