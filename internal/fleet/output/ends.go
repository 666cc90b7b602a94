package output

import (
	"fmt"
	"io"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet/hostset"
)

// Ends groups messages about hosts: equal ones are shown once, also if they differ only in the
// hosts' names, addresses and keys, which become <host>, <fingerprint> and <line>.
type Ends map[string]*group

// Add adds a host to the group of its message; first reports that the group is new.
func (e Ends) Add(h host.Host, text string) (first bool) {
	same := WithoutHost(text, h.Name)
	gr := e[same]
	if first = gr == nil; first {
		gr = &group{text: text}
		e[same] = gr
	}
	if gr.text != text {
		gr.text = same
	}
	gr.hosts = append(gr.hosts, h.String())
	return first
}

// Write writes a line for each group, the largest first.
func (e Ends) Write(w io.Writer) {
	for _, gr := range bySize(e) {
		fmt.Fprintf(w, "%s (%d) =: %s\n", asSet(gr.hosts), len(gr.hosts), termsafe.Line(gr.text))
	}
}

// asSet folds names of hosts for people.
func asSet(hosts []string) string { return termsafe.Line(hostset.Fold(hosts)) }
