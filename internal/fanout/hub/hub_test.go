package hub

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/fanout/job"
)

const directoryOf = "SSHPACE_TEST_HUB"

func TestMain(m *testing.M) {
	if dir := os.Getenv(directoryOf); dir != "" { // a hub of its own, which tests kill
		signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
		s, err := NATS{}.Serve(context.Background(), job.Serving{Dir: dir, Log: func(text string) { fmt.Fprintln(os.Stderr, text) }})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		s.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process starts a hub in a process of its own, by another program if one is given, which ends with
// the test.
func process(t *testing.T, dir string, by ...string) *exec.Cmd {
	t.Helper()
	by = append(by, os.Args[0])
	cmd := exec.Command(by[0], by[1:]...)
	cmd.Env = append(os.Environ(), directoryOf+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stderr = &said
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the hub says %q: %v: %s", line, err, &said)
	}
	return cmd
}

func serve(t *testing.T, p job.Serving) *Server {
	t.Helper()
	if p.Dir == "" {
		p.Dir = t.TempDir()
	}
	p.Log = func(text string) { t.Log("hub: " + text) }
	s, err := NATS{}.Serve(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.(*Server)
}

func busOf(t *testing.T, s *Server, r job.Role) job.Bus {
	t.Helper()
	b, err := s.Bus(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

const event = "event.web.j-1.0"

// An entry is appended behind the last one that its writer has seen, once.
func TestAppend(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{})
	a, b := busOf(t, s, job.LauncherRole("web")), busOf(t, s, job.LauncherRole("web"))
	ctx := soon(t)
	if _, err := a.Last(ctx, event); !errors.Is(err, job.ErrNoEntry) {
		t.Errorf("the last of none: %v", err)
	}
	entry := job.Entry{Subject: event, Header: map[string]string{"Owner": "a/1", "Empty": ""}, Data: []byte("one\n")}
	seq, err := a.Append(ctx, entry, 0, "a/1:1")
	if err != nil || seq != 1 {
		t.Fatal(seq, err)
	}
	if seq, err = a.Append(ctx, entry, 0, "a/1:1"); err != nil || seq != 1 {
		t.Errorf("the same again: %d, %v", seq, err)
	}
	if _, err = b.Append(ctx, entry, 0, "b/1:1"); err != job.ErrConflict {
		t.Errorf("from behind: %v", err)
	}
	last, err := b.Last(ctx, event)
	if err != nil || last.Seq != 1 || last.Header["Owner"] != "a/1" || string(last.Data) != "one\n" || time.Since(last.Time) > time.Minute {
		t.Errorf("the last one: %+v, %v", last, err)
	}
	if seq, err = b.Append(ctx, entry, 1, "b/1:2"); err != nil || seq != 2 {
		t.Errorf("the second: %d, %v", seq, err)
	}
	if _, err = a.Append(ctx, entry, 1, "a/1:2"); err != job.ErrConflict {
		t.Errorf("after another one: %v", err)
	}
}

// The id of an entry is remembered by the journal itself when the hub has forgotten it.
func TestAppendAgainLater(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{})
	b := busOf(t, s, job.LauncherRole("web")).(*bus)
	ctx := soon(t)
	stream, err := s.bus.js.Stream(ctx, events)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.Duplicates = 100 * time.Millisecond
	if _, err := s.bus.js.UpdateStream(ctx, config); err != nil {
		t.Fatal(err)
	}
	entry := job.Entry{Subject: event, Data: []byte("one\n")}
	first, err := b.Append(ctx, entry, 0, "x")
	time.Sleep(500 * time.Millisecond)
	for _, other := range []string{"", "y", "z"} { // entries that others append meanwhile
		if again, err2 := b.Append(ctx, entry, 0, "x"); err != nil || err2 != nil || again != first {
			t.Errorf("%d %v, again before %q %d %v", first, err, other, again, err2)
		}
		last, err := b.Last(ctx, event)
		if err == nil {
			_, err = b.Append(ctx, job.Entry{Subject: event}, last.Seq, other)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Of two writers each entry comes once.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{})
	ctx := soon(t)
	const each = 40
	done := make(chan error, 2)
	for _, name := range []string{"a", "b"} {
		b := busOf(t, s, job.LauncherRole("web"))
		go func() {
			var after uint64
			for i := 0; i < each; {
				text := fmt.Sprint(name, i)
				seq, err := b.Append(ctx, job.Entry{Subject: event, Data: []byte(text)}, after, text)
				switch {
				case err == nil:
					after, i = seq, i+1
				case errors.Is(err, job.ErrConflict):
					last, err := b.Last(ctx, event)
					if err != nil {
						done <- err
						return
					}
					after = last.Seq
				default:
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	all := collect(t, busOf(t, s, job.RoleClient), event, 0)
	seen := map[string]int{}
	for _, e := range all {
		seen[string(e.Data)]++
	}
	if len(all) != 2*each || len(seen) != 2*each {
		t.Errorf("%d entries, %d of them different", len(all), len(seen))
	}
}

func collect(t *testing.T, b job.Bus, pattern string, from uint64) (all []job.Entry) {
	t.Helper()
	for e, err := range b.Follow(soon(t), pattern, job.FollowOptions{From: from, Until: true}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestFollow(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{})
	b := busOf(t, s, job.RoleClient)
	w := busOf(t, s, job.LauncherRole("web"))
	if all := collect(t, b, "event.*.j-1.*", 0); len(all) != 0 {
		t.Errorf("of none: %v", all)
	}
	ctx := soon(t)
	for i := range 5 {
		for _, subject := range []string{"event.web.j-1.3", "event.web.j-2.0"} {
			if _, err := w.Append(ctx, job.Entry{Subject: subject, Header: map[string]string{"N": fmt.Sprint(i)}, Data: []byte("data")}, last(ctx, w, subject), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := collect(t, b, "event.*.j-1.*", 0)
	if len(all) != 5 || all[4].Header["N"] != "4" || string(all[4].Data) != "data" || all[4].Subject != "event.web.j-1.3" {
		t.Errorf("%d: %+v", len(all), all)
	}
	if some := collect(t, b, "event.*.j-1.*", all[2].Seq+1); len(some) != 2 || some[0].Seq != all[3].Seq {
		t.Errorf("from the third on: %+v", some)
	}
	n := 0
	for e, err := range b.Follow(ctx, "event.web.>", job.FollowOptions{Headers: true}) {
		if err != nil || len(e.Data) != 0 || e.Header["N"] == "" {
			t.Fatalf("%+v, %v", e, err)
		}
		if n++; n == 10 {
			break
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cause := errors.New("enough")
	time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
	for _, err := range b.Follow(ctx, "event.web.>", job.FollowOptions{From: 1000}) {
		if err != cause {
			t.Errorf("it ends with %v", err)
		}
	}
}

func last(ctx context.Context, b job.Bus, subject string) uint64 {
	e, _ := b.Last(ctx, subject)
	return e.Seq
}

// A hub that is killed and comes back has lost nothing that it had confirmed, its clients go on,
// and who reads gets each entry once.
func TestHubIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hub := process(t, dir)
	said := make(chan error, 100)
	open := func(r job.Role) job.Bus {
		a := job.Address{Role: r, Dir: dir}
		a.Away = func(err error) { said <- err }
		b, err := NATS{}.Dial(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	writer, reader := open(job.LauncherRole("web")), open(job.RoleClient)
	const n = 300
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		var after uint64
		for i := range n {
			seq, err := writer.Append(t.Context(), job.Entry{Subject: event, Data: []byte(fmt.Sprint(i))}, after, fmt.Sprint("w/", i))
			if err != nil {
				t.Errorf("entry %d: %v", i, err)
				return
			}
			after = seq
		}
	})
	kills := 0
	i := 0
	for e, err := range reader.Follow(soon(t), event, job.FollowOptions{}) {
		if err != nil || string(e.Data) != fmt.Sprint(i) {
			t.Fatalf("entry %d: %q, %v", i, e.Data, err)
		}
		if i++; i == n {
			break
		}
		if i%100 == 50 {
			kills++
			_ = hub.Process.Kill()
			_ = hub.Wait()
			hub = process(t, dir)
		}
	}
	away, back := 0, 0
	for range len(said) {
		if err := <-said; err != nil {
			away++
		} else {
			back++
		}
	}
	if kills != 3 || away != 6 || back != 6 {
		t.Errorf("%d kills; 2 connections were told %d times that it is away, %d times that it is back", kills, away, back)
	}
}

// While the hub is away a method waits until its time is over, and says so.
func TestAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hub := process(t, dir)
	b, err := NATS{}.Dial(t.Context(), job.Address{Role: job.LauncherRole("web"), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_ = hub.Process.Kill()
	_ = hub.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := b.Append(ctx, job.Entry{Subject: event}, 0, "1"); !errors.Is(err, job.ErrAway) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append: %v", err)
	}
	if _, err := b.Last(ctx, event); !errors.Is(err, job.ErrAway) {
		t.Errorf("Last: %v", err)
	}
	if _, err := b.Take(ctx, "web", time.Second); !errors.Is(err, job.ErrAway) {
		t.Errorf("Take: %v", err)
	}
	if _, err := (NATS{}).Dial(t.Context(), job.Address{Role: job.RoleClient, Dir: dir}); err == nil || !strings.Contains(err.Error(), "no hub listens at") {
		t.Errorf("Dial: %v", err)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{Limits: job.Limits{Bytes: 300 << 10}})
	b := busOf(t, s, job.LauncherRole("web"))
	ctx := soon(t)
	var after uint64
	var err error
	for i := 0; err == nil && i < 10; i++ {
		after, err = b.Append(ctx, job.Entry{Subject: event, Data: make([]byte, 100<<10)}, after, fmt.Sprint(i))
	}
	if !errors.Is(err, job.ErrFull) {
		t.Fatalf("it ends with %v", err)
	}
	if err := busOf(t, s, job.RoleClient).Remove(ctx, "j-1"); err != nil {
		t.Fatal(err)
	}
	if _, err = b.Append(ctx, job.Entry{Subject: event, Data: make([]byte, 100<<10)}, 0, "new"); err != nil {
		t.Errorf("after its job was removed: %v", err)
	}
	if _, err = b.Append(ctx, job.Entry{Subject: event, Data: make([]byte, 1<<20)}, 0, "big"); err == nil || !strings.Contains(err.Error(), "larger than the hub accepts") {
		t.Errorf("a mebibyte: %v", err)
	}
}

// A batch is given to one launcher, to another one when its lease is over, and to none when it is
// done.
func TestTake(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{})
	client, a, b := busOf(t, s, job.RoleClient), busOf(t, s, job.LauncherRole("web")), busOf(t, s, job.LauncherRole("web"))
	ctx := soon(t)
	for range 2 { // the second time it is known
		if err := client.Put(ctx, job.Entry{Subject: "batch.web.2026_j-1.7"}); err != nil {
			t.Fatal(err)
		}
	}
	const lease = 500 * time.Millisecond
	w, err := a.Take(ctx, "web", lease)
	if err != nil {
		t.Fatal(err)
	}
	if w.Subject() != "batch.web.2026_j-1.7" {
		t.Errorf("took %s", w.Subject())
	}
	if status, err := client.Status(ctx); err != nil || status.Taken["web"] != 1 || status.Waiting["web"] != 0 || len(status.Streams) != 4 {
		t.Errorf("%+v, %v", status, err)
	}
	for range 4 {
		time.Sleep(lease / 2)
		if err := w.Working(ctx); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	w, err = b.Take(ctx, "web", lease)
	if err != nil || time.Since(began) < lease/2 {
		t.Fatal(w, err, time.Since(began))
	}
	for range 2 {
		if err := w.Done(ctx); err != nil {
			t.Error(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 2*lease)
	defer cancel()
	if _, err := a.Take(short, "web", lease); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after its end: %v", err)
	}
}
