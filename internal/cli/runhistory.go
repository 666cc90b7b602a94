package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sshpace/internal/clean"
	"sshpace/internal/history"
	"sshpace/internal/hostset"
)

// rerun returns the command of the last run and those of its hosts that a set
// names.
func rerun(store *history.Store, set string) (command string, hosts []string, err error) {
	last, err := store.Last()
	if err != nil {
		return "", nil, &Error{Err: err, Hint: "--rerun needs a run that was recorded; see sshpace run --history", Code: ExitUsage}
	}
	hosts, err = last.Select(set)
	if err != nil {
		return "", nil, &Error{Err: err, Hint: "use failed, unreachable, unknown, unfinished or not-started", Code: ExitUsage}
	}
	if len(hosts) == 0 {
		return "", nil, &Error{What: fmt.Sprintf("the last run, %s, has no %s hosts", last.ID, set), Hint: "there is nothing to repeat", Code: ExitUsage}
	}
	return last.Command, hosts, nil
}

// historySets are the columns of the list.
var historySets = []string{"ok", "failed", "unreachable", "not-started", "unfinished"}

// showHistory lists the recorded runs, the newest first, or one in full.
func showHistory(w io.Writer, store *history.Store, args []string) error {
	b := bufio.NewWriter(w)
	if len(args) > 0 {
		rec, err := store.Read(args[0])
		if err != nil {
			return &Error{Err: err, Hint: "sshpace run --history lists the runs", Code: ExitUsage}
		}
		return errors.Join(showRecord(b, rec), b.Flush())
	}
	ids, err := store.IDs()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tHOSTS\tOK\tFAILED\tUNREACHABLE\tNOT STARTED\tUNFINISHED\tCOMMAND")
	for _, id := range ids {
		rec, err := store.Read(id)
		if err != nil {
			fmt.Fprintf(table, "%s\t\t\t\t\t\t\t(%s)\n", id, oneLine(err.Error()))
			continue
		}
		counts := rec.Counts()
		fmt.Fprintf(table, "%s\t%d", id, len(rec.Hosts))
		for _, set := range historySets {
			fmt.Fprintf(table, "\t%d", counts[set])
		}
		fmt.Fprintf(table, "\t%s\n", clean.Line(rec.Command))
	}
	return errors.Join(table.Flush(), b.Flush())
}

// showRecord writes one run: what it was, its sets and why hosts failed.
func showRecord(w io.Writer, rec *history.Record) error {
	fmt.Fprintf(w, "run %s, %s: %s\n", rec.ID, rec.Start.Local().Format("2006-01-02 15:04:05"), clean.Line(rec.Command))
	for _, set := range historySets {
		hosts, err := rec.Select(set)
		if err != nil {
			return err
		}
		if len(hosts) > 0 {
			fmt.Fprintf(w, "%s (%d): %s\n", set, len(hosts), clean.Line(hostset.Fold(hosts)))
		}
	}
	for _, r := range rec.Results {
		if r.Status == "ok" {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", clean.Line(r.Host), clean.Line(explainRecorded(r)))
	}
	return nil
}

func explainRecorded(r history.Result) string {
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
	if len(parts) == 0 {
		parts = append(parts, r.Status)
	}
	return strings.Join(parts, ", ")
}
