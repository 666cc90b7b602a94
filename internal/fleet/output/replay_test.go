package output

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// A run that is replayed from its record is recorded in the same way once more, with all that was
// kept of the output: every word parses back.
func TestReplay(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		how := How{Flags: map[string][]string{"user": {"ann"}}, Repeats: "x"}
		var first, second bytes.Buffer
		list := []host.Host{{Name: "a1"}, {Name: "a2", Address: "192.0.2.1", Port: 22}, {Name: "b", User: "ann"}}
		sent, replayed := streams{all: map[string]string{}}, streams{all: map[string]string{}}
		random(t, r, Tee{NewRecord(&first, how), sent}, list)
		got, err := Replay(bytes.NewReader(first.Bytes()), Tee{NewRecord(&second, how), replayed})
		if diff := cmp.Diff(withoutOutput(first.String()), withoutOutput(second.String())) + cmp.Diff(sent.all, replayed.all); err != nil || diff != "" || !cmp.Equal(got, how) {
			t.Fatalf("%v, %+v (-want +got):\n%s", err, got, diff)
		}
	}
}

// A line of a run that continues comes with its end, unless it may be a part of a longer one.
func TestReplayOfUnfinished(t *testing.T) {
	var record bytes.Buffer
	j, list := NewRecord(&record, How{}), []host.Host{{Name: "a"}}
	long := strings.Repeat("x", defaultMaxLine)
	for stream, text := range []string{"line\nno end", long + "y\n" + long + "\n"} {
		if stream == 0 {
			_ = j.Begin(fleet.Start{Hosts: list})
		}
		_ = j.Output(fleet.Event{Host: "a", Stream: fleet.Stream(stream), Data: []byte(text)})
	}
	got := streams{all: map[string]string{}}
	if _, err := Replay(&record, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a stdout": "line\n", "a stderr": long + "y\n" + long}, got.all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// streams holds all output of each host and stream.
type streams struct {
	fleet.Nothing
	all map[string]string
}

func (s streams) Output(e fleet.Event) error {
	s.all[e.Host+" "+e.Stream.String()] += string(e.Data)
	return nil
}

// withoutOutput is a record without the output, whose lines of two streams may stand in another
// order.
func withoutOutput(record string) string {
	lines := strings.SplitAfter(record, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"type":"output"`) }), "")
}

// random reports a run of three hosts to a sink.
func random(t *testing.T, r *rand.Rand, sink fleet.Sink, list []host.Host) {
	t.Helper()
	one := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(sink.Begin(fleet.Start{ID: "id", Time: time.Unix(r.Int64N(1e9), r.Int64N(1e9)), Command: "true", Hosts: list}))
	for i, h := range list {
		if r.IntN(3) == 0 {
			continue
		}
		check(sink.Started(i))
		for range r.IntN(4) {
			check(sink.Output(fleet.Event{Index: i, Host: h.String(), Stream: fleet.Stream(r.IntN(2)), Data: []byte(one("a", "b\n", "\n", "\xff\r\n", strings.Repeat("long", 5000), "\x1b[1m"))}))
		}
		res := fleet.Result{
			Outcome: fleet.Outcome{
				Addr: one("", "192.0.2.1:22"), Engine: one("", "native"), Ran: fleet.Ran(r.IntN(3)), Class: fleet.Class(r.IntN(int(fleet.Cancelled) + 1)), Exit: r.IntN(4) - 1,
				Signal: one("", "TERM"), Err: one("", "refused \x1b"), Hint: one("", "h"), Note: one("", "n"),
			},
			Index: i, Host: h, Phase: fleet.Phase(r.IntN(int(fleet.PhaseExit) + 1)), Batch: r.IntN(3), Attempts: r.IntN(3),
			Elapsed: time.Duration(r.Int64N(1e9)), Waited: time.Duration(r.Int64N(1e9)), OutBytes: r.Int64N(9), ErrBytes: r.Int64N(9), Incomplete: one("", "cut"),
		}
		if r.IntN(2) == 0 {
			res.Start = time.Unix(0, r.Int64())
		}
		for phase := range res.Spent {
			res.Spent[phase] = time.Duration(r.IntN(3))
		}
		check(sink.Done(res, fleet.Summary{}))
	}
	if r.IntN(2) == 0 {
		check(sink.End(fleet.Summary{OK: r.IntN(4), Failed: 1, Stopped: one("", "s"), MaxExit: 3, Elapsed: time.Duration(r.IntN(9))}))
	}
}
