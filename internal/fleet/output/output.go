// Package output shows what a fleet run does: each type here is a fleet.Sink.
// Prefix writes lines as they come, Gather folds identical output, JSON writes
// records, Files keeps each host's bytes, Tally counts for the summary and
// Progress draws one line on a terminal. Tee joins them.
//
// What remote machines send is cleaned before people see it (package clean)
// and is kept as it came in JSON and Files. Sinks hold bounded memory whatever
// a host sends. They are not for concurrent use, except where said; fleet.Run
// never overlaps calls.
package output

import (
	"errors"
	"fmt"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
)

// Tee hands everything to several sinks. Output stops at the first error; Done
// reaches every sink, so that a record of the run stays complete.
type Tee []fleet.Sink

var _ fleet.Sink = Tee(nil)

// Output hands on a piece of output.
func (t Tee) Output(e fleet.Event) error {
	for _, sink := range t {
		if err := sink.Output(e); err != nil {
			return err
		}
	}
	return nil
}

// Done hands on the end of a host.
func (t Tee) Done(r fleet.Result) error {
	var errs []error
	for _, sink := range t {
		errs = append(errs, sink.Done(r))
	}
	return errors.Join(errs...)
}

// Explain says in one safe line how a host ended, "" for one that ended well:
// "exit 3", "killed by signal TERM", "unreachable: connection refused".
func Explain(r *fleet.Result) string {
	switch status := r.Status(); {
	case status == fleet.OK:
		return ""
	case status == fleet.NotStarted:
		return "not started"
	case r.Class == fleet.NoFailure && r.Signal != "":
		return "killed by signal " + termsafe.Line(r.Signal)
	case r.Class == fleet.NoFailure:
		return fmt.Sprintf("exit %d", r.Exit)
	case status == fleet.Unreachable:
		return "unreachable: " + reason(r)
	case r.Ran == fleet.RanUnknown:
		return reason(r) + "; it is not known whether the command ran"
	}
	return reason(r)
}

// reason is the error text, or the class where there is none.
func reason(r *fleet.Result) string {
	if r.Err == "" {
		return r.Class.String()
	}
	return termsafe.Line(r.Err)
}
