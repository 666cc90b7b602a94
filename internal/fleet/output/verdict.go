package output

import (
	"cmp"
	"fmt"

	"sshpace/internal/base/fault"
	"sshpace/internal/fleet"
)

// Ending is the end of a run.
type Ending struct {
	fleet.Summary
	Err      error  // error of the run itself
	Recorded bool   // the history knows it
	Run      string // its ID, where it may not be the last run
	Files    bool   // the run copied these; otherwise it ran a command
	MaxRC    bool   // the exit code is the largest one of all hosts
}

// Verdict returns the end for people, with the exit code.
func (e Ending) Verdict() error {
	switch {
	case fault.NoSpace(e.Err): // no command is ended for output that cannot be written
		hint := "make room; all commands had ended, see sshpace run --history"
		if e.NotStarted == e.Total() {
			hint = "make room; no command was started"
		}
		return fault.WithHint(fmt.Errorf("write output: %w", e.Err), hint)
	case e.Err != nil:
		return e.Err
	case e.Lost != nil:
		return &fault.Error{
			What: "output is incomplete: " + e.Lost.Error(), Code: e.code(),
			Hint: "make room; the commands were not disturbed" + e.known(", see sshpace run --history for how they ended", ""),
		}
	case e.Stopped != "" && e.NotStarted > 0:
		return &fault.Error{
			What: fmt.Sprintf("stopped: %s; %d of %d hosts were not started", e.Stopped, e.NotStarted, e.Total()), Code: e.code(),
			Hint: e.goOn(),
		}
	}
	return fault.Exit(e.code())
}

// goOn says how to run the command on the hosts that were not started.
func (e Ending) goOn() string {
	if e.Files {
		return e.known("the same with -w @"+cmp.Or(e.Run, "last")+":not-started continues with them", "no history knows this run, --no-record: name them with -w")
	}
	of := ""
	if e.Run != "" {
		of = e.Run + ":"
	}
	return e.known("sshpace run --rerun "+of+"not-started continues with them", "--rerun does not know this run, --no-record: name them with -w")
}

// known returns one text if the history knows the run, and the other if it does not.
func (e Ending) known(yes, no string) string {
	if e.Recorded {
		return yes
	}
	return no
}

func (e Ending) code() int {
	switch {
	case e.MaxRC:
		return max(e.MaxExit, min(e.Incomplete, 1))
	case e.Failed > 0 || e.NotStarted > 0 || e.Incomplete > 0:
		return 1
	case e.Unreachable > 0:
		return fault.Unreachable
	}
	return 0
}
