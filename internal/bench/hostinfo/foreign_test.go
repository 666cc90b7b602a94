//go:build linux

package hostinfo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/record"
)

// What is not ours is what all cores spent less this process, ssh and, where it runs here, sshd.
func TestForeignLoad(t *testing.T) {
	ms := func(n int) *time.Duration { d := time.Duration(n) * time.Millisecond; return &d }
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		readable bool
		slices   []record.Slice
		want     *time.Duration
	}{
		{"here", true, []record.Slice{{Trial: 2, ClientCPUNS: ms(300), ServerCPUNS: ms(200)}}, ms(900 - 100 - 500)},
		{"no clock of the server", true, []record.Slice{{Trial: 2, ClientCPUNS: ms(300)}}, nil},
		{"more than there was", true, []record.Slice{{Trial: 2, ClientCPUNS: ms(800), ServerCPUNS: ms(200)}}, ms(0)},
		{"no /proc/stat", false, []record.Slice{{Trial: 2, ClientCPUNS: ms(300), ServerCPUNS: ms(200)}}, nil},
	} {
		now, all, own := at, 7*time.Second, time.Second
		var got *record.Slices
		meter := &ForeignLoad{
			Now:  func() time.Time { return now },
			Used: func() (time.Duration, time.Duration, bool) { return all, own, tt.readable },
			Sink: func(r record.Record) error { got, _ = r.(*record.Slices); return nil },
		}
		for _, r := range []record.Record{
			&record.Trial{ID: 2, Workload: record.Sitting},
			&record.Slices{Slices: tt.slices},
		} {
			if _, is := r.(*record.Slices); is {
				now, all, own = now.Add(time.Second), all+900*time.Millisecond, own+100*time.Millisecond
			}
			if err := meter.Record(r); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tt.want, got.ForeignCPUNS); diff != "" || tt.readable && got.SpanNS != time.Second {
			t.Errorf("%s: span %v (-want +got):\n%s", tt.name, got.SpanNS, diff)
		}
	}
}

// A core that another process keeps busy is seen on the real machine.
func TestUsed(t *testing.T) {
	all, own, ok := Used()
	if !ok || all <= 0 || own <= 0 || all < own {
		t.Errorf("all cores %v, this process %v, %v", all, own, ok)
	}
}
