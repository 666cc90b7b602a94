package hostlist

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/route"
)

// Schema names the version of the JSON form.
const Schema = "sshpace.hosts/1"

// Reached writes a table of the hosts' targets by the configuration, at most width columns wide (0:
// any width).
func Reached(ctx context.Context, w io.Writer, width int, hosts []host.Host, config *route.Router) error {
	table := text.Table{Columns: []text.Column{{Head: "HOST", Fit: text.Cut}, {Head: "USER"}, {Head: "ADDRESS", Fit: text.Cut}, {Head: "PORT", Right: true}, {Head: "THROUGH", Fit: text.Cut}}}
	for _, h := range hosts {
		found, err := config.Route(ctx, h)
		if err != nil {
			return err
		}
		var through []string
		for _, jump := range found.Jumps {
			through = append(through, jump.Name)
		}
		row := []string{h.Name, found.Host.User(), found.Host.HostName(), strconv.Itoa(found.Host.Port()), strings.Join(through, ",")}
		for i := range row {
			row[i] = termsafe.Line(row[i])
		}
		table.Rows = append(table.Rows, row)
	}
	_, err := io.WriteString(w, table.Text(max(0, width-1)))
	return err
}

// Exact writes every host so that -w reads it back: user, name=address, port.
func Exact(w io.Writer, hosts []host.Host) error {
	b := bufio.NewWriter(w)
	for _, h := range hosts {
		fmt.Fprintln(b, h.Exact())
	}
	return b.Flush()
}

// Groups are the groups of some sources.
type Groups struct {
	Sources  *Opened
	Of       []string // only groups that have one of these hosts; nil: all
	Members  bool     // with their hosts
	Autostep Autostep
}

type hostJSON struct {
	Host    string `json:"host"`
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	User    string `json:"user,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	Label   string `json:"label,omitempty"`
	Origin  string `json:"origin"`
	// Settings are those of an inventory, in the form of ssh's -o.
	Settings []string `json:"settings,omitempty"`
}

// WriteJSON writes hosts as one object.
func WriteJSON(w io.Writer, hosts []host.Host, autostep Autostep) error {
	list := make([]hostJSON, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, hostJSON{h.String(), h.Name, h.Address, h.User, h.Port, h.Label, h.Origin, strings.FieldsFunc(h.Settings, func(r rune) bool { return r == '\n' })})
	}
	return termsafe.WriteJSON(w, struct {
		Schema string     `json:"schema"`
		Count  int        `json:"count"`
		Folded string     `json:"folded"`
		Hosts  []hostJSON `json:"hosts"`
	}{Schema, len(hosts), autostep.fold(host.Names(hosts)), list}, "  ")
}

// Write lists the groups of all sources but earlier runs, or those that have one of the hosts.
func (g Groups) Write(stdout, stderr io.Writer) error {
	s, out := g.Sources, bufio.NewWriter(stdout)
	for _, source := range slices.Sorted(maps.Keys(s.Groups)) {
		if source == "*" {
			continue
		}
		groups, err := s.Groups[source].Names("")
		if err != nil {
			return &fault.Error{Err: err, Code: fault.Misuse}
		}
		for _, group := range groups {
			g.line(out, stderr, "@"+strings.TrimPrefix(source+":"+group, ":"))
		}
	}
	s.Warn(stderr)
	return out.Flush()
}

// line writes a line. An invalid group causes a warning and does not hide the others.
func (g Groups) line(out, stderr io.Writer, group string) {
	if !g.Members && g.Of == nil {
		fmt.Fprintln(out, group)
		return
	}
	members, err := hostset.Expand(group, g.Sources.Options())
	if err != nil {
		fmt.Fprintf(stderr, "sshpace: warning: %s: %s\n", group, termsafe.OneLine(err.Error()))
		return
	}
	if g.Of != nil {
		members = slices.DeleteFunc(members, func(m string) bool { return !slices.Contains(g.Of, m) })
		if len(members) == 0 {
			return
		}
	}
	if !g.Members {
		fmt.Fprintln(out, group)
		return
	}
	fmt.Fprintln(out, strings.TrimRight(group+" "+g.Autostep.fold(members), " "))
}
