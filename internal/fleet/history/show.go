package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/journal"
)

// shownSets are those that show the result of a run.
var shownSets = []string{"ok", "failed", "unreachable", "not-started", "unknown", "unfinished"}

// shortID returns as much of an ID as is unambiguous among the runs, and at least the second of its
// beginning. ids are sorted.
func shortID(ids []string, at int) string {
	id, n := ids[at], len("20060102T150405")
	for _, other := range append(ids[max(at-1, 0):at:at], ids[min(at+1, len(ids)):min(at+2, len(ids))]...) {
		for n < len(id) && strings.HasPrefix(other, id[:n]) {
			n++
		}
	}
	return id[:n]
}

// Listing selects the runs to show, and the form.
type Listing struct {
	Words []string  // only runs that have all of them in their command, hosts or kept output; a single one may be an ID, of the run to show in full
	Since time.Time // only runs since then
	Limit int       // at most this many, the newest; 0: one screen of a terminal, otherwise all; -1: all
	Width int       // of the terminal, 0 = none
	JSON  bool
	View  View // of the run to show in full
	Jobs  bool // only detached runs
}

// View makes the sink that shows a recorded run, once its beginning is known.
type View func(*Record, fleet.Start) (fleet.Sink, error)

// screenful is how many runs a terminal shows: with head and prompt they fit into 24 lines.
const screenful = 20

// Print shows recorded runs.
func (s *Store) Print(out io.Writer, l Listing) error {
	w := bufio.NewWriter(out)
	show := s.Show
	if l.JSON {
		show = s.ShowJSON
	}
	if len(l.Words) == 1 {
		switch rec, err := s.run(l.Words[0], s.ids); {
		case err == nil && l.JSON:
			show = func(io.Writer, Listing) error { return s.WriteJSON(w, rec.ID) }
		case err == nil:
			show = func(io.Writer, Listing) error { return s.showRun(w, rec, l.View) }
		case !errors.Is(err, ErrNone):
			return fault.Usage("sshpace run --history lists the runs", "%s", err)
		}
	}
	return cmp.Or(show(w, l), w.Flush())
}

// listed is a recorded run, or the reason why it cannot be read.
type listed struct {
	id  string // as short as it can be
	rec *Record
	err error
}

// list returns the runs to show, the newest first, and counts the others.
func (s *Store) list(l Listing) (list []listed, more int, err error) {
	ids, err := s.ids()
	limit := l.Limit
	if limit == 0 && l.Width > 0 {
		limit = screenful
	}
	for i, id := range ids {
		full := limit > 0 && len(list) == limit
		if l.Jobs && !s.lasts(id) {
			continue
		}
		if full && len(l.Words) == 0 && l.Since.IsZero() {
			more++
			continue
		}
		rec, unread := s.Read(id)
		switch {
		case unread != nil && len(l.Words) > 0 || unread == nil && !s.has(id, rec, l.Words):
			continue
		case unread == nil && rec.Start.Before(l.Since):
			continue
		case full:
			more++
			continue
		}
		list = append(list, listed{shortID(ids, i), rec, unread})
	}
	if len(list) == 0 && len(l.Words) > 0 && err == nil {
		err = fault.Usage("sshpace run --history lists the runs", "no recorded run has %s in its ID, its command, its hosts or its kept output", shell.Line(l.Words...))
	}
	return list, more, err
}

// has reports whether each word is in the command, in the name of a host, or in the kept output.
func (s *Store) has(id string, rec *Record, words []string) bool {
	text := strings.ToLower(rec.Command + "\n" + strings.Join(rec.Hosts, "\n"))
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(text, strings.ToLower(word)) })
	if len(words) == 0 || rec.How.Kept == 0 {
		return len(words) == 0
	}
	f, err := s.open(id)
	if err != nil {
		return false
	}
	defer f.Close()
	return output.Says(f, words)
}

// Show lists recorded runs, the newest first.
func (s *Store) Show(w io.Writer, l Listing) error {
	list, more, err := s.list(l)
	if err != nil {
		return err
	}
	table := text.Table{Columns: []text.Column{
		{Head: "ID"}, {Head: "WHEN"}, {Head: "HOSTS", Right: true}, {Fit: text.Cut, Tight: true}, {Head: "RESULT", Fit: text.Cut}, {Head: "COMMAND", Fit: text.Cut},
	}}
	for _, run := range list {
		row := []string{termsafe.Line(run.id), "", "", "", "", ""}
		if rec := run.rec; rec == nil {
			row[5] = "(" + termsafe.OneLine(run.err.Error()) + ")"
		} else {
			row[1], row[2], row[3] = when(rec.Start.Local()), fmt.Sprint(len(rec.Hosts)), asSet(rec.Hosts)
			row[4], row[5] = rec.ending(), termsafe.OneLine(rec.Command)
		}
		table.Rows = append(table.Rows, row)
	}
	if _, err = io.WriteString(w, table.Text(max(0, l.Width-1))); err == nil && more > 0 && l.Width > 0 {
		_, err = fmt.Fprintf(w, "%s: sshpace run --history --limit -1\n", unit.Count(more, "older run"))
	}
	return err
}

// when prints a time of the past for a list.
func when(t time.Time) string {
	if t.Year() == time.Now().Year() {
		return t.Format("Jan _2 15:04")
	}
	return t.Format("2006-01-02")
}

// asSet prints hosts for people, without the addresses that only a repetition needs.
func asSet(hosts []string) string {
	var names []string
	for _, text := range hosts {
		if h, err := host.Parse(text); err == nil {
			text = h.String()
		}
		names = append(names, text)
	}
	return termsafe.Line(hostset.Fold(names))
}

// ending prints "3 ok, 1 failed", with the remaining hosts of the run before, as "2 ok; before: 1
// failed"; it leaves out empty sets.
func (rec *Record) ending() string {
	own := numbers(func(set string) int { hosts, _ := rec.own(set); return len(hosts) }) // every name is known
	left := numbers(func(set string) int { return len(rec.left(set)) })
	if left != "" {
		return own + "; before: " + left
	}
	return own
}

// numbers prints "3 ok, 1 failed", by the size of each set.
func numbers(of func(set string) int) string {
	var parts []string
	for _, set := range shownSets {
		n := of(set)
		if set == "unknown" {
			n -= of("unfinished") // which are among them
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(set, "-", " ")))
		}
	}
	return strings.Join(parts, ", ")
}

// ShowJSON lists recorded runs as one JSON object a line, the newest first.
func (s *Store) ShowJSON(w io.Writer, l Listing) error {
	list, _, err := s.list(l)
	if err != nil {
		return err
	}
	for _, run := range list {
		line := struct {
			Type     string         `json:"type"`
			Schema   string         `json:"schema"`
			ID       string         `json:"id"`
			Start    string         `json:"start,omitempty"`
			Command  string         `json:"command,omitempty"`
			Hosts    int            `json:"hosts"`
			Sets     map[string]int `json:"sets,omitempty"` // how many hosts each has
			Finished bool           `json:"finished"`       // otherwise it continues, or was killed
			Elapsed  int64          `json:"elapsed_ns,omitempty"`
			Error    string         `json:"error,omitempty"` // why it cannot be read
		}{Type: "recorded", Schema: output.Schema, ID: run.id}
		if rec := run.rec; rec == nil {
			line.Error = run.err.Error()
		} else {
			line.ID = rec.ID
			line.Start, line.Command, line.Hosts, line.Sets = rec.Start.Format(time.RFC3339Nano), rec.Command, len(rec.Hosts), rec.counts()
			line.Finished, line.Elapsed = rec.Finished, rec.Summary.Elapsed.Nanoseconds()
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
	for line, err := range journal.Lines(f) {
		if errors.Is(err, journal.ErrTruncated) {
			break
		}
		if err = cmp.Or(err, termsafe.WriteJSON(w, json.RawMessage(line), "")); err != nil {
			return err
		}
	}
	return nil
}

// showRun writes a run: its command, its sets, and, in a view, the kept output and why
// hosts failed.
func (s *Store) showRun(w *bufio.Writer, rec *Record, view View) error {
	fmt.Fprintf(w, "run %s, %s: %s\n", termsafe.Line(rec.ID), rec.Start.Local().Format("2006-01-02 15:04:05"), termsafe.Line(rec.Command))
	for _, set := range shownSets {
		own, _ := rec.own(set) // every name is known
		for i, hosts := range [][]string{own, rec.left(set)} {
			if len(hosts) > 0 {
				fmt.Fprintf(w, "%s%s (%d): %s\n", set, [...]string{"", " before"}[i], len(hosts), asSet(hosts))
			}
		}
	}
	if rec.How.Kept == 0 && slices.ContainsFunc(rec.Results, func(r fleet.Result) bool { return r.OutBytes+r.ErrBytes > 0 }) {
		fmt.Fprintln(w, "output: not kept; --keep-output SIZE keeps that of a run")
	}
	return cmp.Or(w.Flush(), s.Replay(rec, view))
}

// Replay shows in a view what is kept of a run so far.
func (s *Store) Replay(rec *Record, view View) error {
	f, err := s.open(rec.ID)
	if err != nil {
		return err
	}
	defer f.Close()
	sink := rec.shownBy(view)
	if _, err := output.Replay(f, sink); err != nil || rec.Finished {
		return err
	}
	return sink.End(sink.so)
}

// shownBy returns the sink that shows the run in a view.
func (rec *Record) shownBy(view View) *followed {
	return &followed{view: func(start fleet.Start) (fleet.Sink, error) {
		sink, err := view(rec, start)
		return &shown{Sink: sink, keeps: rec.How.Kept > 0, kept: map[int]int64{}}, err
	}}
}

// shown reports how much output of a host was not kept.
type shown struct {
	fleet.Sink
	keeps bool
	kept  map[int]int64 // bytes, by the index of the host, until it ends
}

func (s *shown) Output(e fleet.Event) error {
	s.kept[e.Index] += int64(len(e.Data))
	return s.Sink.Output(e)
}

func (s *shown) Done(r fleet.Result, so fleet.Summary) error {
	if lost := r.OutBytes + r.ErrBytes - s.kept[r.Index]; s.keeps && lost > 0 {
		r.Incomplete = cmp.Or(r.Incomplete, fmt.Sprintf("%d bytes were not kept", lost))
	}
	delete(s.kept, r.Index)
	return s.Sink.Done(r, so)
}
