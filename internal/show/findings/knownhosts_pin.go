package findings

import (
	"fmt"
	"io"
	"path/filepath"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/knownhosts/tidy"
)

// Pinned writes the lines of a pinned server, into their own file or to w, and reports it to
// people.
func Pinned(w, people io.Writer, r tidy.PinResult, file string, asJSON bool) error {
	if file != "" {
		var err error
		if file, err = filepath.Abs(file); err != nil { // Include takes other names from ~/.ssh
			return err
		}
		if err := tidy.WritePinConfig(file, r); err != nil {
			return fault.WithHint(err, "name a file that this command has written, or a new one, with --out")
		}
	}
	for _, key := range r.Keys {
		fmt.Fprintf(people, "sshpace: %s is pinned to %s in %s\n", r.Name, key, r.File)
	}
	if len(r.Keys) == 0 {
		fmt.Fprintf(people, "sshpace: no key of %s is known; compare the fingerprint when ssh asks at the first login, then run this again\n", r.Name)
	}
	switch {
	case asJSON:
		return termsafe.WriteJSON(w, struct {
			Schema string `json:"schema"`
			tidy.PinResult
		}{"sshpace.known-hosts.pin/1", r}, "  ")
	case file != "":
		_, err := fmt.Fprintf(people, "sshpace: wrote %s; ssh reads it if ~/.ssh/config starts with: Include %s\n", file, file)
		return err
	}
	_, err := io.WriteString(w, r.Config)
	return err
}
