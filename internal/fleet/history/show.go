package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
)

// shownSets are those that show how a run ended.
var shownSets = []string{"ok", "failed", "unreachable", "not-started", "unknown", "unfinished"}

// shortID is as much of an ID as tells the run from the others, and the second in which
// it began. ids are sorted.
func shortID(ids []string, at int) string {
	id, n := ids[at], len("20060102T150405")
	for _, other := range append(ids[max(at-1, 0):at:at], ids[min(at+1, len(ids)):min(at+2, len(ids))]...) {
		for n < len(id) && strings.HasPrefix(other, id[:n]) {
			n++
		}
	}
	return id[:n]
}

// Print lists the recorded runs in so many columns, 0 for any number, or shows the one that is named.
func (s *Store) Print(out io.Writer, width int, ids []string, inJSON bool) error {
	w := bufio.NewWriter(out)
	show := func() error { return s.Show(w, width) }
	switch {
	case len(ids) > 0:
		rec, err := s.Read(ids[0])
		if err != nil {
			return fault.Usage("sshpace run --history lists the runs", "%s", err)
		}
		show = func() error { return rec.Show(w) }
		if inJSON {
			show = func() error { return s.WriteJSON(w, ids[0]) }
		}
	case inJSON:
		show = func() error { return s.ShowJSON(w) }
	}
	return cmp.Or(show(), w.Flush())
}

// Show lists the recorded runs, the newest first, in so many columns; 0: in any number.
func (s *Store) Show(w io.Writer, width int) error {
	ids, err := s.ids()
	if err != nil {
		return err
	}
	table := text.Table{Columns: []text.Column{{Head: "ID"}, {Head: "HOSTS", Right: true}, {Head: "RESULT", Fit: text.Cut}, {Head: "COMMAND", Fit: text.Cut}}}
	for i, id := range ids {
		row := []string{termsafe.Line(shortID(ids, i)), "", "", ""}
		if rec, err := s.Read(id); err != nil {
			row[3] = "(" + termsafe.OneLine(err.Error()) + ")"
		} else {
			row[1], row[2], row[3] = fmt.Sprint(len(rec.Hosts)), rec.ending(), termsafe.Line(rec.Command)
		}
		table.Rows = append(table.Rows, row)
	}
	_, err = io.WriteString(w, table.Text(max(0, width-1)))
	return err
}

// ending is "3 ok, 1 failed"; sets without hosts are left out.
func (rec *Record) ending() string {
	var parts []string
	counts := rec.counts()
	counts["unknown"] -= counts["unfinished"] // which are among them
	for _, set := range shownSets {
		if n := counts[set]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(set, "-", " ")))
		}
	}
	return strings.Join(parts, ", ")
}

// ShowJSON lists the recorded runs as one JSON object a line, the newest first.
func (s *Store) ShowJSON(w io.Writer) error {
	ids, err := s.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		line := struct {
			Type     string         `json:"type"`
			Schema   string         `json:"schema"`
			ID       string         `json:"id"`
			Start    string         `json:"start,omitempty"`
			Command  string         `json:"command,omitempty"`
			Hosts    int            `json:"hosts"`
			Sets     map[string]int `json:"sets,omitempty"` // how many hosts each has
			Finished bool           `json:"finished"`       // else it goes on, or was killed
			Elapsed  int64          `json:"elapsed_ns,omitempty"`
			Error    string         `json:"error,omitempty"` // why it cannot be read
		}{Type: "recorded", Schema: output.Schema, ID: id}
		if rec, err := s.Read(id); err != nil {
			line.Error = err.Error()
		} else {
			line.Start, line.Command, line.Hosts, line.Sets = rec.Start.Format(time.RFC3339Nano), rec.Command, len(rec.Hosts), rec.counts()
			line.Finished, line.Elapsed = rec.Finished, rec.Elapsed.Nanoseconds()
		}
		if err := termsafe.WriteJSON(w, line, ""); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes the record of a run as it is kept.
func (s *Store) WriteJSON(w io.Writer, id string) error {
	f, err := s.open(id)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := linesOf(f)
	for lines.Scan() {
		if err := termsafe.WriteJSON(w, json.RawMessage(lines.Bytes()), ""); err != nil {
			return err
		}
	}
	return lines.Err()
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
	ends := output.Ends{}
	for _, r := range rec.Results {
		if h, err := host.Parse(r.Host); err == nil && r.Explain() != "" {
			ends.Add(h, r.Explain())
		}
	}
	ends.Write(w)
	return nil
}
