package tidy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/check"
	"sshpace/internal/ssh/knownhosts/index"

	"sshpace/internal/ssh/conf"
)

// PinOptions describe a server whose address changes, and its present address.
type PinOptions struct {
	Name    string // the word that the user types after ssh, and the name of the key
	Address string // where the server is at the moment
	Port    int    // 0 means 22
	From    string // the present name of its key in the files; empty: Name, then Address
	Dir     string // where the files of pinned servers are
}

// PinResult is a pinned server.
type PinResult struct {
	Name    string   `json:"name"`
	Address string   `json:"address"`
	File    string   `json:"file"`   // the known_hosts file of this server alone
	Keys    []string `json:"keys"`   // type and fingerprint; empty if no key is known yet
	Config  string   `json:"config"` // the lines for ssh_config
}

// Pin gives a server whose address changes its own known_hosts file, in which its key has its name
// at any address (HostKeyAlias). After a move only the address in ssh_config is new; the key is
// still verified, while a file that goes by addresses would ask again and a habit of answering
// "yes" would let anyone in.
//
// The keys come from the file itself if it exists, or else from x. If neither knows one, the first
// connection will ask, as ssh always does.
func Pin(x *index.Index, o PinOptions) (PinResult, error) {
	host := wildcard.Lower(o.Name)
	if err := errors.Join(CheckName(host), checkAddress(o.Address)); err != nil {
		return PinResult{}, err
	}
	directory, err := MakeDirectory(o.Dir)
	if err != nil {
		return PinResult{}, err
	}
	defer directory.Close()
	file := filepath.Join(o.Dir, host)
	keys := usable(index.Open(file).Lookup(host, 0))
	if len(keys) == 0 {
		keys = keysToPin(x, o)
		if err := write(directory, host, keys); err != nil {
			return PinResult{}, err
		}
	}
	config, err := configOf(o, file, len(keys) > 0)
	return PinResult{Name: o.Name, Address: o.Address, File: file, Keys: fingerprints(keys), Config: config}, err
}

// checkAddress refuses an address that ssh_config would not accept as a HostName.
func checkAddress(address string) error {
	bad := func(r rune) bool {
		return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("._:-", r))
	}
	if address == "" || address[0] == '-' || strings.ContainsFunc(address, bad) {
		return fmt.Errorf("%.80q is not an address", address)
	}
	return nil
}

// keysToPin looks for the keys of a server that is not pinned yet.
func keysToPin(x *index.Index, o PinOptions) []index.Entry {
	places := []string{o.Name, knownhosts.HostPort(o.Name, o.Port), knownhosts.HostPort(o.Address, o.Port)}
	if o.From != "" {
		places = []string{o.From}
	}
	for _, name := range places {
		if keys := usable(x.Lookup(name, 0)); len(keys) > 0 {
			return keys
		}
	}
	return nil
}

// usable keeps the host keys that are not revoked.
func usable(entries []index.Entry) []index.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e index.Entry) bool {
		return e.Marker != knownhosts.MarkerNone || check.RevokedBy(entries, e.Key) != nil
	})
}

func fingerprints(keys []index.Entry) []string {
	out := make([]string, len(keys))
	for i, e := range keys {
		out[i] = e.Fingerprint()
	}
	return out
}

// write makes the file of a server; without keys it leaves that to ssh.
func write(directory Directory, host string, keys []index.Entry) error {
	if len(keys) == 0 {
		return nil
	}
	var text strings.Builder
	for _, e := range keys {
		fmt.Fprintf(&text, "%s %s\n", host, knownhosts.MarshalKey(e.Key))
	}
	return directory.Replace(host, text.String())
}

// configOf returns the Host block of a pinned server.
func configOf(o PinOptions, file string, known bool) (string, error) {
	path, err := ConfigPath(file)
	if err != nil {
		return "", err
	}
	strict := "yes"
	if !known {
		strict = "ask"
	}
	port := ""
	if o.Port != 0 && o.Port != knownhosts.DefaultPort {
		port = fmt.Sprintf("    Port %d\n", o.Port)
	}
	return fmt.Sprintf(`Host %s
    HostName %s
%s    HostKeyAlias %s
    UserKnownHostsFile %s
    StrictHostKeyChecking %s
    CheckHostIP no
    UpdateHostKeys yes
    HashKnownHosts no
`, o.Name, o.Address, port, wildcard.Lower(o.Name), conf.Quote(path), strict), nil
}

// header starts the file that holds the blocks of all pinned servers.
const header = "# Pinned servers, written by: sshpace known-hosts pin. Put \"Include THIS FILE\" at the top of ~/.ssh/config.\n"

// WritePinConfig puts the block of one pinned server into a file of such blocks, in place of an
// older block of the same name. The file is replaced atomically; it refuses a file that it did not
// write itself.
func WritePinConfig(file string, r PinResult) error {
	blocks, err := readConfig(file)
	if err != nil {
		return err
	}
	blocks = slices.DeleteFunc(blocks, func(block string) bool { return strings.HasPrefix(block, "Host "+r.Name+"\n") })
	blocks = append(blocks, r.Config)
	slices.Sort(blocks)
	directory, err := MakeDirectory(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer directory.Close()
	return directory.Replace(filepath.Base(file), header+"\n"+strings.Join(blocks, "\n"))
}

// readConfig returns the blocks of a file of pinned servers.
func readConfig(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rest, ours := bytes.CutPrefix(text, []byte(header))
	if !ours {
		return nil, fmt.Errorf("%s was not written by this command", file)
	}
	var blocks []string
	for block := range strings.SplitSeq(string(rest), "\nHost ") {
		if block = strings.TrimSpace(block); block != "" {
			blocks = append(blocks, "Host "+block+"\n")
		}
	}
	return blocks, nil
}
