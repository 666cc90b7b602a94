package fleet_test

import (
	"testing"

	"sshpace/internal/fleet"
)

func TestStatus(t *testing.T) {
	tests := []struct {
		r    fleet.Result
		want fleet.Status
	}{
		{fleet.Result{}, fleet.NotStarted},
		{fleet.Result{Attempts: 1, Phase: fleet.PhaseAuth, Outcome: fleet.Outcome{Class: fleet.Cancelled, Exit: -1}}, fleet.NotStarted},
		{fleet.Result{Attempts: 1, Phase: fleet.PhaseExit, Outcome: fleet.Outcome{Ran: fleet.RanYes}}, fleet.OK},
		{fleet.Result{Attempts: 1, Phase: fleet.PhaseExit, Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: 1}}, fleet.Failed},
		{fleet.Result{Attempts: 1, Phase: fleet.PhaseExit, Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: -1, Signal: "TERM"}}, fleet.Failed},
		{fleet.Result{Attempts: 1, Phase: fleet.PhaseExec, Outcome: fleet.Outcome{Ran: fleet.RanUnknown, Exit: -1, Class: fleet.Lost}}, fleet.Failed},
		{fleet.Result{Attempts: 1, Phase: fleet.PhaseAuth, Outcome: fleet.Outcome{Ran: fleet.RanNo, Exit: -1, Class: fleet.AuthFailed}}, fleet.Unreachable},
	}
	for _, test := range tests {
		if got := test.r.Status(); got != test.want {
			t.Errorf("%+v is %v, want %v", test.r, got, test.want)
		}
	}
}
