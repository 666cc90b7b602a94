package findings

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/ssh/knownhosts/tidy"
)

// Split writes the configuration, or everything as JSON, and reports the outcome of the hosts to
// people. Names that cannot be file names are a failure, since ssh would not know those hosts any
// more.
func Split(out, w io.Writer, r tidy.SplitResult, config string, asJSON bool) (err error) {
	if !asJSON {
		_, err = io.WriteString(out, config)
	} else {
		err = termsafe.WriteJSON(out, struct {
			Schema string `json:"schema"`
			tidy.SplitResult
			Config string `json:"config"`
		}{"sshpace.known-hosts.split/1", r, config}, "  ")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "sshpace: wrote %s to %s, %d were there already\n", unit.Count(r.Written, "file"), r.Dir, r.Unchanged)
	for _, note := range []struct {
		names []string
		about string
	}{
		{r.Kept, "differ from the original and were kept (--force replaces them)"},
		{r.Missing, "have no line in the original"},
	} {
		if len(note.names) > 0 {
			fmt.Fprintf(w, "sshpace: %d %s: %s\n", len(note.names), note.about, someNames(note.names))
		}
	}
	why := map[string][]string{}
	for _, line := range r.Unresolved {
		name, reason, _ := strings.Cut(line, ": ")
		why[reason] = append(why[reason], name)
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		fmt.Fprintf(w, "sshpace: %d could not be resolved (%s; --no-resolve skips that): %s\n", len(why[reason]), cmp.Or(termsafe.OneLine(reason), "unknown"), someNames(why[reason]))
	}
	if r.Unmatched > 0 {
		fmt.Fprintf(w, "sshpace: no named host matches %s of the original; ssh will not know those hosts under the lines above (name them with --hosts-file, or use --keep-unmatched)\n", unit.Count(r.Unmatched, "line"))
	}
	if r.Unreadable > 0 {
		fmt.Fprintf(w, "sshpace: neither sshpace nor ssh can read %s of the original: see sshpace known-hosts lint\n", unit.Count(r.Unreadable, "line"))
	}
	if len(r.Unsafe) > 0 {
		return fault.WithHint(fmt.Errorf("%s cannot be file names: %s", unit.Count(len(r.Unsafe), "host"), someNames(r.Unsafe)),
			"all other hosts have their files; keep these in a file of their own")
	}
	return nil
}

// someNames returns a list that fits on a line.
func someNames(names []string) string {
	const shown = 5
	text := termsafe.OneLine(strings.Join(names[:min(shown, len(names))], ", "))
	if len(names) > shown {
		text += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return text
}

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
