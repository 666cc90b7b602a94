package findings

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/knownhosts/tidy"
	"sshpace/internal/sys/terminal"
)

// lookupLine is a line in JSON.
type lookupLine struct {
	File        string `json:"file"`
	Line        int    `json:"line"`
	Marker      string `json:"marker"`
	Hosts       string `json:"hosts"`
	Hashed      bool   `json:"hashed"`
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	Comment     string `json:"comment"`
}

// markerTitles are ssh-keygen's names of the markers.
var markerTitles = map[knownhosts.Marker]string{knownhosts.MarkerCA: "CA", knownhosts.MarkerRevoked: "REVOKED"}

// Entries prints the lines that match a name, as ssh-keygen -F does.
func Entries(w io.Writer, name string, entries []index.Entry, asJSON bool) error {
	if asJSON {
		lines := []lookupLine{}
		for _, e := range entries {
			lines = append(lines, lookupLine{e.File, e.Line, e.Marker.String(), e.Hosts, e.Hashed, e.Key.Type(), ssh.FingerprintSHA256(e.Key), e.Comment})
		}
		return termsafe.WriteJSON(w, struct {
			Schema string       `json:"schema"`
			Name   string       `json:"name"`
			Lines  []lookupLine `json:"lines"`
		}{"sshpace.known-hosts.lookup/1", name, lines}, "  ")
	}
	for _, e := range entries {
		if _, err := fmt.Fprintf(w, "# Host %s found: line %d %s\n%s\n", termsafe.OneLine(name), e.Line, markerTitles[e.Marker], shown(w, e.Text)); err != nil {
			return err
		}
	}
	return nil
}

// LookedUp reports to people under which name a host was looked up, where ssh_config replaces the
// typed one, and that no line was found, which is a failure.
func LookedUp(people io.Writer, typed, name string, files []string, lines int) error {
	as := ""
	if !strings.EqualFold(typed, name) {
		as = fmt.Sprintf(" (%s, by ssh_config)", termsafe.OneLine(name))
	}
	switch {
	case lines == 0:
		return fmt.Errorf("no line for %s%s in %s", termsafe.OneLine(typed), as, termsafe.OneLine(strings.Join(files, ", ")))
	case as != "":
		fmt.Fprintf(people, "sshpace: %s is known as %s by ssh_config\n", termsafe.OneLine(typed), termsafe.OneLine(name))
	}
	return nil
}

// shown prints a line of a file: unchanged for other programs, or made safe for a terminal, without
// the line end of Windows.
func shown(w io.Writer, line string) string {
	if !terminal.Is(w) {
		return line
	}
	return termsafe.Line(strings.TrimRight(line, "\r"))
}

// screenLines is the number of lines that fit a terminal.
const screenLines = 20

// Findings prints the findings of lint, one a line. If they do not fit a screen, it prints some of
// each kind, and counts the others, unless all are wanted.
func Findings(w io.Writer, findings []tidy.Finding, asJSON, all bool) error {
	if asJSON {
		return termsafe.WriteJSON(w, struct {
			Schema   string         `json:"schema"`
			Findings []tidy.Finding `json:"findings"`
		}{"sshpace.known-hosts.lint/1", append([]tidy.Finding{}, findings...)}, "  ")
	}
	if all || len(findings) <= screenLines {
		return write(w, findings)
	}
	const examples = 3
	for _, kind := range tidy.Kinds() {
		own := slices.DeleteFunc(slices.Clone(findings), func(f tidy.Finding) bool { return f.Kind != kind })
		more := len(own) - examples
		if more <= 1 { // which has a line anyway
			more = 0
		}
		if err := write(w, own[:len(own)-more]); err != nil {
			return err
		}
		if more == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %d more like these; --all shows them\n", kind, more); err != nil {
			return err
		}
	}
	return nil
}

func write(w io.Writer, findings []tidy.Finding) error {
	for _, f := range findings {
		where := f.File
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		other := ""
		if f.Other != "" {
			other = " (see " + f.Other + ")"
		}
		if _, err := fmt.Fprintf(w, "%s: %s: %s%s\n", where, f.Kind, termsafe.OneLine(f.Detail), other); err != nil {
			return err
		}
	}
	return nil
}
