package job

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"
)

// kept is a hub that has some entries, and gets no others.
type kept struct {
	Bus
	entries []Entry
}

func (k *kept) Follow(ctx context.Context, pattern string, o FollowOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		last := map[string]int{}
		for i, e := range k.entries {
			last[e.Subject] = i
		}
		for i, e := range k.entries {
			if !strings.HasPrefix(e.Subject, strings.TrimSuffix(pattern, "*.>")) || o.Last && last[e.Subject] != i {
				continue
			}
			if o.Headers {
				e.Data = nil
			}
			if !yield(e, nil) {
				return
			}
		}
		if !o.Until {
			<-ctx.Done()
			yield(Entry{}, context.Cause(ctx))
		}
	}
}

// signed returns the entries of a job of two pools.
func signed(t *testing.T, id string, begin time.Time) (entries []Entry) {
	t.Helper()
	specs := map[string]*Spec{
		"web": {Schema: Schema, ID: id, Pool: "web", Text: "uptime", Batches: []string{"web[1-5]", "web[6-8]"}},
		"db":  {Schema: Schema, ID: id, Pool: "db", Text: "uptime", Batches: []string{"db1"}, Input: make([]byte, 2*partSize)},
	}
	_, data, err := NewManifest(specs, begin, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for pool := range specs {
		manifest := fmt.Appendf(nil, `{"id":%q,"time":%q,"expires":%q}`, id, begin.Format(time.RFC3339), begin.Add(24*time.Hour).Format(time.RFC3339))
		some, err := (&Signed{Manifest: manifest, Spec: data[pool]}).entries(pool, id)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, some...)
	}
	return entries
}

// far returns an entry of a batch whose first hosts have started, ended and failed.
func far(pool, id string, batch, started, ended, failed int) Entry {
	s := State{Owner: "east/x7"}
	for bits, n := range map[*Bits]int{&s.Started: started, &s.Ended: ended, &s.Failed: failed} {
		for i := range n {
			bits.Add(i)
		}
	}
	return Entry{Subject: subject(eventKind, pool, id, batch), Header: s.header()}
}

// A board is the same in whatever order entries come, and each stage has its name.
func TestBoard(t *testing.T) {
	begin := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	const id = "20261127T100000Z.5-abc234"
	alive := Entry{Subject: "alive.web.east", Time: time.Now().Add(-time.Minute), Data: []byte(`{"instance":"east/x7","host":"bastion","running":3}`)}
	skewed := Entry{Subject: "alive.db.west", Time: time.Now().Add(-time.Hour), Data: []byte(`{"instance":"west/x9"}`)}
	for _, c := range []struct {
		name    string
		entries []Entry
		at      time.Duration
		want    Count
		stage   Stage
	}{
		{"new", nil, 0, Count{Hosts: 9}, Waiting},
		{"running", []Entry{far("web", id, 0, 5, 2, 1), far("web", id, 0, 5, 3, 1)}, 0, Count{9, 5, 3, 1}, Running},
		{"done", []Entry{far("web", id, 0, 5, 5, 1), far("web", id, 1, 3, 3, 0), far("db", id, 0, 1, 1, 1)}, 48 * time.Hour, Count{9, 9, 9, 2}, Done},
		{"stopped", []Entry{far("web", id, 0, 5, 5, 1), {Subject: subject(stopKind, "web", id, stopStarting), Data: []byte(`{"by":"alice"}`)}}, 0, Count{9, 5, 5, 1}, Halted},
		{"none started", []Entry{far("web", id, 0, 2, 5, 1), far("web", id, 1, 0, 3, 0), far("db", id, 0, 0, 1, 0), {Subject: subject(stopKind, "web", id, stopRunning)}}, 0, Count{9, 2, 2, 1}, Halted},
		{"refused", []Entry{far("web", id, 0, 0, 5, 5), far("web", id, 1, 0, 3, 3), far("db", id, 0, 0, 1, 1)}, 0, Count{9, 0, 9, 9}, Done},
		{"expired", []Entry{far("web", id, 0, 5, 5, 1)}, 48 * time.Hour, Count{9, 5, 5, 1}, Expired},
		{"lies", []Entry{far("web", id, 0, 90, 90, 90), far("web", id, 7, 5, 5, 5), far("web", id, mostBatches, 1, 1, 1), {Subject: "event.web.x"}, {Subject: "job.web." + Token(id) + ".9"}}, 0, Count{9, 5, 5, 5}, Running},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := slices.Concat(c.entries, []Entry{alive, skewed}, signed(t, id, begin))
			for late := range 2 {
				var b Board
				for _, e := range entries[:late*len(entries)] { // what happened to a job may come before it
					b.apply(e)
				}
				if err := b.Follow(t.Context(), &kept{entries: entries}, true); err != nil {
					t.Fatal(err)
				}
				jobs, launchers := b.Jobs(), b.Launchers()
				if len(jobs) != 1 || jobs[0].ID != id || jobs[0].Text != "uptime" || !jobs[0].Start.Equal(begin) || len(jobs[0].Pools) != 2 {
					t.Fatalf("%+v", jobs)
				}
				if got := jobs[0].Count(); got != c.want || jobs[0].stage(time.Now().Add(c.at)) != c.stage || c.at == 0 && jobs[0].Stage != c.stage {
					t.Errorf("%+v %s, want %+v %s", got, jobs[0].stage(time.Now().Add(c.at)), c.want, c.stage)
				}
				if len(launchers) != 2 || launchers[1].Name != "east" || launchers[1].Running != 3 || time.Since(launchers[0].Seen) > time.Minute {
					t.Errorf("launchers %+v", launchers)
				}
			}
		})
	}
}

// A board that is followed changes as entries come, and ends with its context.
func TestBoardEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	var b Board
	ended := make(chan error)
	go func() { ended <- b.Follow(ctx, &kept{entries: signed(t, "a", time.Now())}, false) }()
	for len(b.Jobs()) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel(over)
	if err := <-ended; err != over {
		t.Errorf("ended with %v", err)
	}
}
