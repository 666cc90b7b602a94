package output

import (
	"fmt"
	"io"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet/hostset"
)

// Ends are what is said of hosts, once for all of which the same is said but for their own
// names, addresses and keys, which are <host>, <fingerprint> and <line> then.
type Ends map[string]*group

// Add puts a host to those of which the same is said; first tells that it was said of none.
func (e Ends) Add(h host.Host, text string) (first bool) {
	same := withoutHost(text, h.Name)
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

// asSet is names of hosts as people read them.
func asSet(hosts []string) string { return termsafe.Line(hostset.Fold(hosts)) }
