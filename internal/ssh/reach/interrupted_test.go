package reach_test

import (
	"context"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
)

// A host whose way is not known yet when the run ends was not started, and is not unreachable.
func TestInterruptedOnItsWay(t *testing.T) {
	e, err := reach.New(t.Context(), reach.Params{Params: route.Params{Getenv: func(string) string { return "" }}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, end := context.WithCancelCause(t.Context())
	end(fleet.ErrInterrupted)
	r := fleet.Result{Outcome: e.Execute(ctx, host.Host{Name: "192.0.2.1"}, fleet.Command{}, nil), Attempts: 1}
	if r.Status() != fleet.NotStarted || r.Err != "interrupted" {
		t.Errorf("%v: %+v", r.Status(), r.Outcome)
	}
}
