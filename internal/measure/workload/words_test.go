//go:build linux

package workload

import (
	"context"
	"testing"
	"time"

	"sshpace/internal/record"
)

// What a program says in one sentence is told whole, and other lines are not drawn into it.
func TestWhy(t *testing.T) {
	for said, want := range map[string]string{
		"Using username \"x\".\nThe cipher selected for this session is\nChaCha20-Poly1305, which, with this server, is vulnerable to\nthe 'Terrapin' attack, potentially allowing an\nattacker to modify the session.\nConnection abandoned.\n": "The cipher selected for this session is ChaCha20-Poly1305, which, with this server, is vulnerable to the 'Terrapin' attack, potentially allowing an attacker to modify the session.",
		"bind [127.0.0.1]:9: Address already in use\nchannel_setup: cannot listen to port: 9\nCould not request local forwarding.\n":                                                                                                             "bind [127.0.0.1]:9: Address already in use",
		"scp: write remote \"/x\": Failure\n": "scp: write remote \"/x\": Failure",
	} {
		l := &lastWords{text: []byte(said)}
		if got := l.why(context.Canceled); got != want {
			t.Errorf("%q says\n%s, want\n%s", said, got, want)
		}
	}
}

// A subject whose only short run was held up gets more turns, until it has a figure;
// the others get no more than they were to have, and nobody more than so many.
func TestFigurelessGetMoreTurns(t *testing.T) {
	held, hopeless := 0, 0
	scripted := func(short func() time.Duration) *Subject {
		return &Subject{Run: func(_ context.Context, size int64) (Reading, error) {
			if size == 1 {
				return Reading{Wall: short()}, nil
			}
			return Reading{Wall: 50 * time.Millisecond}, nil
		}}
	}
	all := []*Subject{
		scripted(func() time.Duration { return 10 * time.Millisecond }),
		scripted(func() time.Duration {
			if held++; held <= 1 {
				return time.Second
			}
			return 10 * time.Millisecond
		}),
		scripted(func() time.Duration { hopeless++; return time.Second }),
	}
	runs := map[int]int{}
	err := Turns{Rounds: 1, Size: 1 << 20}.Measure(t.Context(), t.Context(), all, func(r record.Record) error {
		if r.Run != nil && r.Run.Kind == record.ShortRun {
			runs[r.Run.Way]++
		}
		return nil
	})
	if err != nil || runs[1] != 1 || runs[2] < 2 || runs[2] > 3 || runs[3] != 1+again {
		t.Errorf("short runs %v, %v", runs, err)
	}
}
