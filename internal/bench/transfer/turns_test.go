//go:build linux

package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/bench/rounds"
	"sshpace/internal/record"
)

// A subject whose only short run was held up gets more turns, until it has a figure; the others get
// no more than they were to have, and nobody more than so many.
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
	err := Turns{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 1}}, Size: 1 << 20}.Measure(t.Context(), t.Context(), all, func(r record.Record) error {
		if x, is := r.(*record.Reading); is && x.Kind == record.ShortRun {
			runs[x.Subject]++
		}
		return nil
	})
	if err != nil || runs[1] != 1 || runs[2] < 2 || runs[2] > 3 || runs[3] != 4 {
		t.Errorf("short runs %v, %v", runs, err)
	}
}

// With a budget there are as many whole rounds as fit into it; what fails again and again does not
// make it wait.
func TestTurnsUntilTheBudgetIsOver(t *testing.T) {
	for _, c := range []struct {
		fails error
		want  map[record.RunKind]int
	}{
		{nil, map[record.RunKind]int{record.ShortRun: 4, record.LongRun: 4}},
		{errors.New("refused"), map[record.RunKind]int{record.ShortRun: 2, record.LongRun: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			subject := &Subject{Run: func(_ context.Context, size int64) (Reading, error) {
				wall := time.Second / 2
				if size > 1 {
					wall *= 3
				}
				time.Sleep(wall)
				return Reading{Wall: wall}, c.fails
			}}
			f, began := &record.File{}, time.Now()
			err := Turns{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 1, Budget: 9 * time.Second}}, Size: 1 << 20}.Measure(t.Context(), t.Context(), []*Subject{subject}, f.Sink())
			runs := map[record.RunKind]int{}
			for _, r := range f.Readings {
				runs[r.Kind]++
			}
			if total := c.want[record.ShortRun] + c.want[record.LongRun]; err != nil || len(f.Readings) != total || c.fails == nil && (!maps.Equal(runs, c.want) || time.Since(began) != 8*time.Second) {
				t.Errorf("runs %v in %s, want %v, %v", runs, time.Since(began), c.want, err)
			}
		})
	}
}

// A budget holds the preparations, too: half of it is for them, and for what there is no time left,
// the file says so.
func TestBudgetHoldsPreparations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*Subject
		for range 5 {
			all = append(all, &Subject{
				Check: func(context.Context, int64) error { time.Sleep(2 * time.Second); return nil },
				Run: func(_ context.Context, size int64) (Reading, error) {
					wall := 100*time.Millisecond + time.Duration(size>>12)*time.Millisecond
					time.Sleep(wall)
					return Reading{Wall: wall}, nil
				},
			})
		}
		f, began := &record.File{}, time.Now()
		err := Turns{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 1, Budget: 10 * time.Second}}, Size: 1 << 20}.Measure(t.Context(), t.Context(), all, f.Sink())
		late, measured := 0, map[int]int{}
		for _, m := range f.Subjects {
			if strings.Contains(m.Why, "--budget") {
				late++
			}
		}
		for _, run := range f.Readings {
			measured[run.Subject]++
		}
		if took := time.Since(began); err != nil || took > 10*time.Second || late != 2 || len(f.Subjects) != 5 || len(measured) != 3 {
			t.Errorf("%s, %d methods left out, runs %v, %v", took, late, measured, err)
		}
	})
}

// Wherever a run was cut off, the one that goes on measures what is missing and nothing twice.
func TestTurnsGoOn(t *testing.T) {
	steady := func(_ context.Context, size int64) (Reading, error) {
		return Reading{Wall: time.Duration(10+size>>10) * time.Millisecond}, nil
	}
	subjects := func() []*Subject {
		return []*Subject{
			{Method: record.Method{Mode: record.ModePipe}, Run: steady},
			{Method: record.Method{Mode: record.ModeSFTP}, Run: steady, Login: func(ctx context.Context) (Reading, error) { return steady(ctx, 1) }},
		}
	}
	const times = 2
	measure := func(old *record.File, sink record.Sink) error {
		return Turns{Plan: rounds.Plan{Rounds: sched.Rounds{Count: times}, Seed: 7, Old: old}, Size: 1 << 20}.Measure(t.Context(), t.Context(), subjects(), sink)
	}
	killed := errors.New("killed")
	for cut := range 2 + times*5 + 1 {
		f := &record.File{}
		into, left := f.Sink(), cut
		err := measure(nil, func(r record.Record) error {
			if left--; left < 0 {
				return killed
			}
			return into(r)
		})
		if whole := cut == 2+times*5; errors.Is(err, killed) == whole {
			t.Fatalf("cut after %d: %v", cut, err)
		}
		if err := measure(f, into); err != nil {
			t.Fatal(err)
		}
		runs := map[string]int{}
		for _, r := range f.Readings {
			runs[fmt.Sprint(f.Subjects[r.Subject-1].Mode, " ", r.Kind)]++
		}
		want := map[string]int{"pipe short": times, "pipe long": times, "sftp short": times, "sftp long": times, "sftp login": times}
		if len(f.Subjects) != 2 || !maps.Equal(runs, want) {
			t.Errorf("cut after %d: %d methods, runs %v", cut, len(f.Subjects), runs)
		}
	}
}

// Long runs are as large as bytes that follow each other ask for: what the first ones cost besides,
// while buffers grow, makes them no smaller.
func TestSizeOfLongRuns(t *testing.T) {
	for name, c := range map[string]struct {
		perMiB, growing time.Duration
		want            int64
	}{
		"fast":             {3 * time.Millisecond, 0, 256 << 20},
		"fast, grows":      {3 * time.Millisecond, 240 * time.Millisecond, 256 << 20},
		"fast, grows long": {3 * time.Millisecond, 900 * time.Millisecond, 256 << 20},
		"slow link":        {time.Second / 3, 0, 2 << 20},
		"slow link, grows": {time.Second / 3, 240 * time.Millisecond, 2 << 20},
		"too fast":         {time.Microsecond, 0, 256 << 20},
	} {
		s := &Subject{Run: func(_ context.Context, size int64) (Reading, error) {
			wall := 100*time.Millisecond + time.Duration(float64(size)/(1<<20)*float64(c.perMiB))
			if size > 1 {
				wall += c.growing
			}
			return Reading{Wall: wall}, nil
		}}
		got, err := Turns{}.calibrate(t.Context(), s)
		if err != nil || got != c.want {
			t.Errorf("%s: %d MiB, %v, want %d", name, got>>20, err, c.want>>20)
		}
	}
}
