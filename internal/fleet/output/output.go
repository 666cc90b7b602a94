// Package output shows what a fleet run does: each type here is a fleet.Sink. prefix writes lines
// as they come, Gather folds identical output, JSON writes records, Files keeps each host's bytes,
// Closing sums up, Progress draws one line on a terminal. Tee joins them.
//
// What remote machines send is cleaned before people see it (package termsafe) and is kept as it
// came in JSON and Files. Sinks hold bounded memory whatever a host sends. They are not for
// concurrent use, except where said; fanout.Run never overlaps calls.
package output

import (
	"cmp"
	"errors"
	"syscall"

	"sshpace/internal/fleet"
)

// Tee passes everything to several sinks, in order. Output stops at the first error that ends the
// run; Done reaches every sink, so that a record of the run stays complete. Losses of one sink are
// in the result that later ones see.
type Tee []fleet.Sink

var _ fleet.Sink = Tee(nil)

// Output passes on a piece of output.
func (t Tee) Output(e fleet.Event) error {
	var loss error
	for _, sink := range t {
		err := sink.Output(e)
		if err != nil && !isLoss(err) {
			return err
		}
		if loss == nil {
			loss = err
		}
	}
	return loss
}

// Begin begins all sinks.
func (t Tee) Begin(s fleet.Start) error {
	return t.each(func(sink fleet.Sink) error { return sink.Begin(s) })
}

// Batch passes on that a batch begins.
func (t Tee) Batch(b fleet.Batch) error {
	return t.each(func(sink fleet.Sink) error { return sink.Batch(b) })
}

// Started passes on that the connection to a host begins.
func (t Tee) Started(index int) error {
	return t.each(func(sink fleet.Sink) error { return sink.Started(index) })
}

// Waiting passes on how many hosts wait.
func (t Tee) Waiting(hosts int) {
	for _, sink := range t {
		sink.Waiting(hosts)
	}
}

// End ends all sinks, and joins their errors.
func (t Tee) End(so fleet.Summary) error {
	return t.each(func(sink fleet.Sink) error { return sink.End(so) })
}

func (t Tee) each(call func(fleet.Sink) error) error {
	var errs []error
	for _, sink := range t {
		errs = append(errs, call(sink))
	}
	return errors.Join(errs...)
}

// Done passes on the end of a host.
func (t Tee) Done(r fleet.Result, so fleet.Summary) error {
	var loss error
	var errs []error
	for _, sink := range t {
		switch err := sink.Done(r, so); {
		case !isLoss(err):
			errs = append(errs, err)
		case loss == nil:
			loss, r.Incomplete = err, cmp.Or(r.Incomplete, err.Error())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return loss
}

// Loss classifies an error of writing for the run: if nobody reads any more the run ends; any other
// error (a full disk) only costs output.
func Loss(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return err
	}
	return &fleet.LostOutput{Err: err}
}

func isLoss(err error) bool {
	_, loss := errors.AsType[*fleet.LostOutput](err)
	return loss
}
