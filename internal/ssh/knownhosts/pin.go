package knownhosts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PinOptions names a server whose address changes, and where it is now.
type PinOptions struct {
	Name    string // what the user types after ssh, and the name of the key
	Address string // where the server is at the moment
	Port    int    // 0 means 22
	From    string // the name in the files under which its key is known so far; empty: Name, then Address
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

// Pin gives a server whose address changes a known_hosts file of its own, in
// which its key stands under its name whatever its address is (HostKeyAlias).
// After a move only the address in ssh_config is new; the key is still
// verified, where a file that goes by addresses would ask again and a habit of
// answering "yes" would let anyone in.
//
// The keys come from the file itself if it exists, or else from x. If neither
// knows one, the first connection will ask, as ssh always does.
func Pin(x *Index, o PinOptions) (PinResult, error) {
	host := lower(o.Name)
	if err := errors.Join(safeFileName(host), checkAddress(o.Address)); err != nil {
		return PinResult{}, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return PinResult{}, err
	}
	file := filepath.Join(o.Dir, host)
	keys := usable(Open(file).Lookup(host, 0))
	if len(keys) == 0 {
		keys = keysToPin(x, o)
		if err := writePin(o.Dir, host, keys); err != nil {
			return PinResult{}, err
		}
	}
	config, err := pinConfig(o, file, len(keys) > 0)
	return PinResult{Name: o.Name, Address: o.Address, File: file, Keys: fingerprints(keys), Config: config}, err
}

// checkAddress refuses what ssh_config could not take as a HostName.
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
func keysToPin(x *Index, o PinOptions) []Entry {
	places := []string{o.Name, HostPort(o.Name, o.Port), HostPort(o.Address, o.Port)}
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
func usable(entries []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		return e.Marker != MarkerNone || revokedBy(entries, e.Key) != nil
	})
}

func fingerprints(keys []Entry) []string {
	out := make([]string, len(keys))
	for i, e := range keys {
		out[i] = e.Fingerprint()
	}
	return out
}

// writePin writes the file of a server; without keys it leaves that to ssh.
func writePin(dir, host string, keys []Entry) error {
	if len(keys) == 0 {
		return nil
	}
	root, err := openPrivateDir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var text strings.Builder
	for _, e := range keys {
		fmt.Fprintf(&text, "%s %s\n", host, marshalKey(e.Key))
	}
	w := fileWriter{root: root, result: new(SplitResult)}
	return w.replace(host, text.String())
}

// pinConfig is the Host block of a pinned server.
func pinConfig(o PinOptions, file string, known bool) (string, error) {
	path, err := configPath(file)
	if err != nil {
		return "", err
	}
	strict := "yes"
	if !known {
		strict = "ask"
	}
	port := ""
	if o.Port != 0 && o.Port != defaultPort {
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
`, o.Name, o.Address, port, lower(o.Name), quoteConfig(path), strict), nil
}

// pinHeader starts the file that holds the blocks of all pinned servers.
const pinHeader = "# Pinned servers, written by: sshpace known-hosts pin. Put \"Include THIS FILE\" at the top of ~/.ssh/config.\n"

// WritePinConfig puts the block of one pinned server into a file that holds
// nothing else than such blocks, in place of an older block of the same name.
// The file is replaced atomically; one that it did not write itself it refuses.
func WritePinConfig(file string, r PinResult) error {
	blocks, err := readPinConfig(file)
	if err != nil {
		return err
	}
	blocks = slices.DeleteFunc(blocks, func(block string) bool { return strings.HasPrefix(block, "Host "+r.Name+"\n") })
	blocks = append(blocks, r.Config)
	slices.Sort(blocks)
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := openPrivateDir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := fileWriter{root: root, result: new(SplitResult)}
	return w.replace(filepath.Base(file), pinHeader+"\n"+strings.Join(blocks, "\n"))
}

// readPinConfig returns the blocks of a file of pinned servers.
func readPinConfig(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rest, ours := bytes.CutPrefix(text, []byte(pinHeader))
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
