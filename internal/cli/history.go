package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"sshpace/internal/history"
)

// The history keeps the newest runs and lists the newest of them.
const (
	keptRuns   = 200
	listedRuns = 20
)

// openHistory is the history of whoever runs us.
func openHistory(sys System) *history.Store { return history.New(history.Dir(sys.Getenv)) }

// listHistory prints the newest runs, the newest last, next to the prompt.
func listHistory(sys System, store *history.Store) error {
	ids, err := store.IDs()
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return withHint(history.ErrNone, "every `sshpace run` is recorded, unless --record none is given")
	}
	w := tabwriter.NewWriter(sys.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTARTED\tHOSTS\tOK\tFAILED\tUNREACHABLE\tUNFINISHED\tCOMMAND")
	ids = ids[:min(len(ids), listedRuns)]
	for i := len(ids) - 1; i >= 0; i-- {
		rec, err := store.Read(ids[i])
		if err != nil {
			fmt.Fprintf(w, "%s\t\t\t\t\t\t\t(%s)\n", oneLine(ids[i]), oneLine(err.Error()))
			continue
		}
		n := rec.Counts()
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", oneLine(rec.ID), rec.Start.Local().Format(time.DateTime),
			n["all"], n["ok"], n["failed"], n["unreachable"], n["unfinished"]+n["not-started"], shorten(oneLine(rec.Command), 60))
	}
	return w.Flush()
}

// shorten cuts a text to a number of characters.
func shorten(text string, length int) string {
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length-3]) + "..."
	}
	return text
}
