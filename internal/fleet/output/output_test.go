package output

import (
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

func out(i int, name, data string) fleet.Event {
	return fleet.Event{Index: i, Host: name, Stream: fleet.Stdout, Data: []byte(data)}
}

func stderr(i int, name, data string) fleet.Event {
	e := out(i, name, data)
	e.Stream = fleet.Stderr
	return e
}

// exited is the result of a command that ran.
func exited(i int, name string, code int) fleet.Result {
	return fleet.Result{
		Index: i, Host: host.Host{Name: name}, Phase: fleet.PhaseExit, Attempts: 1, Elapsed: time.Duration(i+1) * time.Second,
		Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: code},
	}
}

func refused(i int, name string) fleet.Result {
	return fleet.Result{
		Index: i, Host: host.Host{Name: name}, Phase: fleet.PhaseConnect, Attempts: 1,
		Outcome: fleet.Outcome{Ran: fleet.RanNo, Class: fleet.Refused, Exit: -1, Err: "connection refused", Hint: "is sshd running there?"},
	}
}

// play sends everything to the sink and fails on errors.
func play(t *testing.T, sink fleet.Sink, steps ...any) {
	t.Helper()
	for _, step := range steps {
		var err error
		switch s := step.(type) {
		case fleet.Event:
			err = sink.Output(s)
		case fleet.Result:
			err = sink.Done(s, fleet.Summary{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
