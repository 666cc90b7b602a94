package history

import (
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
)

// shownSets are the columns of the list.
var shownSets = []string{"ok", "failed", "unreachable", "not-started", "unknown", "unfinished"}

// Show lists the recorded runs, the newest first.
func (s *Store) Show(w io.Writer) error {
	ids, err := s.ids()
	if err != nil {
		return err
	}
	table := text.Table{Columns: []text.Column{{Head: "ID"}, {Head: "HOSTS", Right: true}}}
	for _, set := range shownSets {
		table.Columns = append(table.Columns, text.Column{Head: strings.ToUpper(strings.ReplaceAll(set, "-", " ")), Right: true})
	}
	table.Columns = append(table.Columns, text.Column{Head: "COMMAND"})
	for _, id := range ids {
		rec, err := s.Read(id)
		if err != nil {
			row := make([]string, len(table.Columns))
			row[0], row[len(row)-1] = termsafe.Line(id), "("+termsafe.OneLine(err.Error())+")"
			table.Rows = append(table.Rows, row)
			continue
		}
		counts := rec.counts()
		row := []string{termsafe.Line(id), fmt.Sprint(len(rec.Hosts))}
		for _, set := range shownSets {
			row = append(row, fmt.Sprint(counts[set]))
		}
		table.Rows = append(table.Rows, append(row, termsafe.Line(rec.Command)))
	}
	_, err = io.WriteString(w, table.Text(0))
	return err
}

// Show writes one run: what it was, its sets and why hosts failed.
func (rec *Record) Show(w io.Writer) error {
	fmt.Fprintf(w, "run %s, %s: %s\n", termsafe.Line(rec.ID), rec.Start.Local().Format("2006-01-02 15:04:05"), termsafe.Line(rec.Command))
	for _, set := range shownSets {
		hosts, err := rec.hostsOf(set)
		if err != nil {
			return err
		}
		if len(hosts) > 0 {
			fmt.Fprintf(w, "%s (%d): %s\n", set, len(hosts), termsafe.Line(hostset.Fold(hosts)))
		}
	}
	for _, r := range rec.Results {
		if r.Status == "ok" && r.Missing == "" {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", termsafe.Line(r.Host), termsafe.Line(explainRecorded(r)))
	}
	return nil
}

func explainRecorded(r Result) string {
	var parts []string
	if r.Exit >= 0 {
		parts = append(parts, fmt.Sprintf("exit %d", r.Exit))
	}
	if r.Signal != "" {
		parts = append(parts, "signal "+r.Signal)
	}
	if r.Error != "" {
		parts = append(parts, r.Error)
	}
	if r.Ran == fleet.RanUnknown.String() {
		parts = append(parts, "ran: unknown")
	}
	if r.Missing != "" {
		parts = append(parts, "output incomplete: "+r.Missing)
	}
	if len(parts) == 0 {
		parts = append(parts, r.Status)
	}
	return strings.Join(parts, ", ")
}
