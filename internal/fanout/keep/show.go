package keep

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/conf"
)

// Schema is the name and version of the JSON of List.
const Schema = "sshpace.keep/1"

// Keeps are keeps that live.
type Keeps []Keep

var errNone = fault.WithHint(errors.New("no connections are kept"), "sshpace keep -w SET keeps some")

const hintList = "sshpace keep --list shows which hosts are"

// List writes what is kept, of all hosts if names is empty, as a table at most width columns wide
// (0: any width) or as JSON.
func (all Keeps) List(w io.Writer, names []string, asJSON bool, width int) error {
	reports, err := collect[Report](all, askList, names)
	if err != nil {
		return err
	}
	for i := range reports {
		sortHosts(reports[i].Hosts, func(h Host) string { return h.Host })
	}
	if asJSON {
		return termsafe.WriteJSON(w, struct {
			Schema string   `json:"schema"`
			Keeps  []Report `json:"keeps"`
		}{Schema, append([]Report{}, reports...)}, "  ")
	}
	var hosts []Host
	for _, r := range reports {
		hosts = append(hosts, r.Hosts...)
	}
	if len(hosts) == 0 {
		return errNone
	}
	_, err = io.WriteString(w, tableOf(hosts, width)+rights(reports, hosts))
	return err
}

// tableOf shows hosts.
func tableOf(hosts []Host, width int) string {
	table := text.Table{Columns: []text.Column{
		{Head: "HOST", Fit: text.Cut}, {Head: "SINCE"}, {Head: "AGE", Right: true}, {Head: "SESSIONS", Right: true}, {Head: "IDLE", Right: true},
		{Head: "BYTES", Right: true}, {Head: "LAST LOSS", Fit: text.Cut},
	}}
	sortHosts(hosts, func(h Host) string { return h.Host })
	for _, h := range hosts {
		row := []string{h.Host, string(h.State), "-", "-", "-", unit.Bytes(h.Received + h.Sent).String(), h.loss()}
		if h.Since != nil {
			row[1], row[2] = clock(*h.Since), unit.Age(time.Since(*h.Since))
			row[3], row[4] = strconv.Itoa(h.Sessions), unit.Age(time.Duration(h.IdleNS))
		}
		for i := range row {
			row[i] = termsafe.Line(row[i])
		}
		table.Rows = append(table.Rows, row)
	}
	return table.Text(max(0, width-1))
}

// loss describes the last loss, and when the host is tried again.
func (h *Host) loss() string {
	switch {
	case h.State == Silent:
		return "does not answer"
	case h.Lost == nil:
		return "-"
	}
	said := clock(*h.Lost)
	if h.Next != nil {
		said += ", again in " + unit.Age(time.Until(*h.Next))
	}
	if h.Why != "" {
		said += ": " + h.Why
	}
	return said
}

// rights warns that old connections have old groups, and names the hosts that wait for a refresh.
func rights(reports []Report, hosts []Host) string {
	var oldest time.Duration
	waiting := 0
	for _, h := range hosts {
		if h.State == Waiting {
			waiting++
		}
		if h.Since != nil {
			oldest = max(oldest, time.Since(*h.Since))
		}
	}
	var b strings.Builder
	if oldest > 0 {
		fmt.Fprintf(&b, "A user's groups on a host are those at the login, up to %s ago.\n", unit.Age(oldest))
	}
	if waiting > 0 {
		fmt.Fprintf(&b, "%s waiting for sshpace keep --refresh.\n", unit.Count(waiting, "host"))
	}
	for _, r := range reports {
		if r.Until != nil && len(r.Hosts) > 0 {
			fmt.Fprintf(&b, "Process %d ends all of its connections in %s.\n", r.PID, unit.Age(time.Until(*r.Until)))
		}
	}
	return b.String()
}

// Stop ends connections, to all hosts if names is empty, and reports it to w.
func (all Keeps) Stop(w io.Writer, names []string, quiet bool) error {
	stopped, err := collect[string](all, askStop, names)
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(stopped, name) })
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return fault.WithHint(fmt.Errorf("not kept: %s", hostset.Fold(missing)), hintList)
	case !quiet:
		fmt.Fprintf(w, "%s stopped: %s\n", unit.Count(len(stopped), "connection"), termsafe.Line(hostset.Fold(stopped)))
	}
	return nil
}

// Log writes what happened to hosts, to all if names is empty, the newest last.
func (all Keeps) Log(w io.Writer, names []string, asJSON bool) error {
	events, err := collect[Event](all, askLog, names)
	if err != nil {
		return err
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	out := bufio.NewWriter(w)
	for _, e := range events {
		if asJSON {
			err = termsafe.WriteJSON(out, e, "")
		} else {
			_, err = fmt.Fprintln(out, e)
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// String is a line for people.
func (e Event) String() string {
	said := clock(e.Time) + " " + e.Host + ": " + e.What
	if e.Why != "" {
		said += ": " + e.Why
	}
	return termsafe.Line(said)
}

// collect asks all keeps.
func collect[T any](all Keeps, what string, names []string) (answers []T, err error) {
	for _, p := range all {
		some, failed := ask[T](p, what, names)
		if failed != nil {
			failed = fault.WithHint(fmt.Errorf("the keep at %s does not answer: %w", p.path, failed), "try again, or end its process")
		}
		answers, err = append(answers, some...), errors.Join(err, failed)
	}
	return answers, err
}

// sortHosts sorts by names of hosts, as sets of hosts do.
func sortHosts[T any](list []T, name func(T) string) {
	place, names := map[string]int{}, make([]string, len(list))
	for i := range list {
		names[i] = name(list[i])
	}
	for i, n := range hostset.Sorted(names) {
		place[n] = i
	}
	slices.SortStableFunc(list, func(a, b T) int { return place[name(a)] - place[name(b)] })
}

// clock is a time of today, or a day.
func clock(t time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format("2006-01-02 15:04")
}

// WriteConfig writes the lines of ssh_config with which ssh finds the connections.
func WriteConfig(w io.Writer, directory string) error {
	_, err := fmt.Fprintf(w, "# Behind all other lines: ssh takes the first value of a keyword.\nHost *\n  ControlPath %s/%%C\n  ControlMaster no\n", conf.Quote(strings.ReplaceAll(directory, "%", "%%")))
	return err
}
