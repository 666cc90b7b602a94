package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/journal"
)

// TestMain lets a test run this binary as a recorder that gets killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SSHPACE_TEST_RECORD_IN"); dir != "" {
		recordForever(dir)
	}
	os.Exit(m.Run())
}

func hosts(t *testing.T, set string) []host.Host {
	t.Helper()
	list, err := hostset.Selection{Sets: []string{set}}.Hosts()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func result(h host.Host, exit int) fleet.Result {
	return fleet.Result{Host: h, Phase: fleet.PhaseExit, Attempts: 1, Elapsed: time.Second, Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: exit}}
}

func record(t *testing.T, s *Store, start time.Time) string {
	t.Helper()
	list := hosts(t, "web[1-4],root@db1:2222,[::1]:22")
	r, err := s.start(start, output.How{})
	if err != nil {
		t.Fatal(err)
	}
	r.Begin(fleet.Start{ID: r.ID, Time: start, Command: "uptime", Hosts: list})
	for _, index := range []int{0, 1, 2, 3, 4} {
		r.Started(index)
	}
	lost := result(list[3], -1)
	lost.Class, lost.Ran = fleet.Lost, fleet.RanUnknown
	cut := result(list[1], 3)
	cut.Incomplete = "cut off"
	for _, res := range []fleet.Result{
		result(list[0], 0), cut, lost,
		{Host: list[4], Phase: fleet.PhaseConnect, Attempts: 1, Outcome: fleet.Outcome{Class: fleet.Refused, Exit: -1, Err: "connection refused"}},
		{Host: list[5], Outcome: fleet.Outcome{Class: fleet.Cancelled, Exit: -1}},
	} {
		if err := r.Done(res, fleet.Summary{}); err != nil {
			t.Fatal(err)
		}
	}
	r.End(fleet.Summary{Elapsed: 5 * time.Second})
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func TestRecordAndSelect(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "state", "runs"))
	start := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	id := record(t, s, start)
	rec, err := s.last()
	if err != nil {
		t.Fatal(err)
	}
	if rec.ID != id || !rec.Start.Equal(start) || rec.Command != "uptime" || !rec.Finished || rec.Summary.Elapsed != 5*time.Second {
		t.Errorf("record = %+v", rec)
	}
	want := map[string]string{
		"all": "[::1]:22 root@db1:2222 web1 web2 web3 web4", "ok": "web1", "failed": "web2", "unreachable": "root@db1:2222",
		"not-started": "[::1]:22", "unfinished": "web3", "unknown": "web3 web4", "incomplete": "web2",
	}
	got := map[string]string{}
	for _, set := range sets {
		list, err := rec.hostsOf(set)
		if err != nil {
			t.Fatal(err)
		}
		got[set] = strings.Join(list, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := rec.counts()["failed"]; n != 1 {
		t.Errorf("%d failed", n)
	}
	if _, err := rec.hostsOf("faled"); err == nil || !strings.Contains(useSets(), "unreachable") {
		t.Errorf("error = %v", err)
	}
}

// The list fits a terminal of 80 columns, by IDs that name one run each.
func TestShow(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "state", "runs"))
	start := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	for _, later := range []time.Duration{0, time.Millisecond, time.Minute} {
		record(t, s, start.Add(later))
	}
	var list bytes.Buffer
	if err := s.Print(&list, Listing{Width: 80}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(list.String()), "\n")
	at := "  " + when(start.Add(time.Minute).Local()) + "      6 [::1]:22"
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "20261121T200100 ") || !strings.Contains(lines[1], at) || !strings.Contains(lines[1], "1 ok, 1 fail") || !strings.HasSuffix(lines[1], "  uptime") {
		t.Errorf("%s", &list)
	}
	for _, line := range lines {
		if len([]rune(line)) > 79 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	for _, line := range lines[1:] {
		if _, err := s.Read(strings.Fields(line)[0]); err != nil {
			t.Error(err)
		}
	}
	var inJSON bytes.Buffer
	if err := s.Print(&inJSON, Listing{JSON: true}); err != nil {
		t.Fatal(err)
	}
	var newest struct {
		ID, Command string
		Hosts       int
		Sets        map[string]int
		Finished    bool
	}
	if err := json.NewDecoder(&inJSON).Decode(&newest); err != nil {
		t.Fatal(err)
	}
	if newest.Hosts != 6 || newest.Sets["failed"] != 1 || !newest.Finished || newest.Command != "uptime" {
		t.Errorf("%+v", newest)
	}
	var record bytes.Buffer
	var last bytes.Buffer
	if err := s.Print(&last, Listing{Words: []string{"last"}, JSON: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteJSON(&record, newest.ID); err != nil || last.String() != record.String() {
		t.Fatal(err)
	}
	if read, err := readRecord(&record); err != nil || read.ID != newest.ID || len(read.Results) == 0 {
		t.Errorf("%+v, %v", read, err)
	}
}

// The list is cut to a screen where there is one, and by a time, a number, and words of commands
// and hosts.
func TestList(t *testing.T) {
	s := New(t.TempDir())
	start := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	for i := range 25 {
		r, err := s.start(start.Add(time.Duration(i)*time.Hour), output.How{})
		if err != nil {
			t.Fatal(err)
		}
		r.Begin(fleet.Start{ID: r.ID, Time: start.Add(time.Duration(i) * time.Hour), Command: fmt.Sprintf("Step %d\nof it", i), Hosts: hosts(t, fmt.Sprintf("web%d,db1=root@192.0.2.%d", i, i))})
		r.Close(t.Context())
	}
	for _, tt := range []struct {
		l        Listing
		runs     int
		has, not string
	}{
		{Listing{}, 25, "Step 0 of it", "older"},
		{Listing{Width: 100}, 20, "5 older runs: sshpace run --history --limit -1", "Step 4 "},
		{Listing{Width: 100, Limit: -1}, 25, "2 db1,web0 ", "older"},
		{Listing{Limit: 2}, 2, "Step 23 ", "Step 22 "},
		{Listing{Since: start.Add(23 * time.Hour)}, 2, "Step 23 ", "Step 22 "},
		{Listing{Words: []string{"step", "web7"}}, 1, "Step 7 ", "Step 8 "},
		{Listing{Words: []string{"db1"}, Width: 100}, 20, "5 older runs", "192.0.2"},
	} {
		var out bytes.Buffer
		if err := s.Print(&out, tt.l); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "Step "); n != tt.runs || !strings.Contains(out.String(), tt.has) || strings.Contains(out.String(), tt.not) {
			t.Errorf("%+v: %d runs\n%s", tt.l, n, &out)
		}
	}
	if err := s.Print(&bytes.Buffer{}, Listing{Words: []string{"step", "nosuch"}}); err == nil || !strings.Contains(err.Error(), "no recorded run has step nosuch in its ID") {
		t.Error(err)
	}
}

// What a run has left open stays open when it is repeated on some of its hosts, until it is
// repeated on all that were left; a run that does something else begins anew.
func TestRepetitionsJoin(t *testing.T) {
	s := New(t.TempDir())
	first := record(t, s, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // web1 ok, web2 failed, db1 unreachable, [::1]:22 not started, web3 unfinished, web4 unknown
	again := func(day int, repeats, set string, exit int) string {
		start := time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
		r, err := s.start(start, output.How{Repeats: repeats})
		if err != nil {
			t.Fatal(err)
		}
		list := hosts(t, set)
		r.Begin(fleet.Start{ID: r.ID, Time: start, Command: "uptime", Hosts: list})
		for i, h := range list {
			r.Started(i)
			r.Done(result(h, exit), fleet.Summary{})
		}
		r.End(fleet.Summary{})
		r.Close(t.Context())
		return r.ID
	}
	is := func(sets, want string) {
		t.Helper()
		rec, got, err := s.Again(sets, io.Discard)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s after %s: %q, want %q (%v)", sets, rec.ID, got, want, err)
		}
	}
	rest := again(2, first, "[::1]:22", 4)
	is("failed", "[::1]:22 web2")
	is("failed,unreachable,unknown", "[::1]:22 root@db1:2222 web2 web3 web4")
	is("ok", "")
	is("all", "[::1]:22")
	is("not-started", "")
	var list, one bytes.Buffer
	if err := errors.Join(s.Print(&list, Listing{Limit: 1}), s.Print(&one, Listing{Words: []string{rest}, View: func(*Record, fleet.Start) (fleet.Sink, error) { return fleet.Nothing{}, nil }})); err != nil ||
		!strings.Contains(list.String(), "  1 failed; before: 1 failed, 1 unreachable, 1 unknown, 1 unfinished  ") || !strings.Contains(one.String(), "\nfailed (1): [::1]:22\nfailed before (1): web2\n") {
		t.Errorf("%v\n%s%s", err, &list, &one)
	}
	third := again(3, rest, "web2,[::1]:22", 0)
	is("failed", "")
	is("unreachable", "root@db1:2222")
	again(4, "", "web1", 0)
	is("failed,unreachable", "")
	again(5, third, "root@db1:2222", 0)
	is("failed,unreachable", "")
	is("unknown", "web3 web4")
	os.Remove(filepath.Join(string(s.dir), first+journal.Ending)) // as pruning does
	is("unknown", "")
}

// What a repetition needs comes back, and a record without it is one of a plain command.
func TestHow(t *testing.T) {
	s := New(t.TempDir())
	want := output.How{
		Stdin: true, Script: &output.Script{Path: "/x/fix.sh", SHA256: "00", Args: []string{"a b"}},
		Flags: map[string][]string{"port": {"22"}, "option": {"A=1", "B=2"}},
	}
	for _, how := range []output.How{{}, want} {
		r, err := s.start(time.Now(), how)
		if err != nil {
			t.Fatal(err)
		}
		r.Begin(fleet.Start{ID: r.ID, Time: time.Now(), Command: "x", Hosts: hosts(t, "web1")})
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		rec, err := s.last()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(how, rec.How); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Any run is a group for host sets, the newest ones by number.
func TestRunsAsGroups(t *testing.T) {
	s := New(t.TempDir())
	id := record(t, s, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	record(t, s, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	opt := hostset.Options{Groups: hostset.Sources{"*": s}}
	got, err := hostset.Expand("@last:failed,@last:unreachable!web4", opt)
	if diff := cmp.Diff([]string{"web2", "root@db1:2222"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, set := range []string{"@last-1:ok", "@" + id + ":ok", "@20260101:ok"} {
		if got, err := hostset.Expand(set, opt); err != nil || len(got) != 1 || got[0] != "web1" {
			t.Errorf("%s: %v, %v", set, got, err)
		}
	}
	for _, set := range []string{"@last-2:ok", "@last--1:ok", "@2026:ok", "@1999:ok", "@last:oks"} {
		if got, err := hostset.Expand(set, opt); err == nil {
			t.Errorf("%s: %v", set, got)
		}
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "runs")
	id := record(t, New(dir), time.Now())
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, id+journal.Ending): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := os.Chmod(dir, 0o702); err != nil {
		t.Fatal(err)
	}
	if _, err := New(dir).start(time.Now(), output.How{}); err == nil {
		t.Error("a directory in which others may write was accepted")
	}
}

func TestCommandCanBeLeftOut(t *testing.T) {
	dir := t.TempDir()
	r, err := New(dir).start(time.Now(), output.How{})
	if err != nil {
		t.Fatal(err)
	}
	r.Begin(fleet.Start{ID: r.ID, Time: time.Now(), Hosts: hosts(t, "a")})
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, r.ID+journal.Ending))
	if err != nil || strings.Contains(string(data), "command") {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestIDsAndPrune(t *testing.T) {
	s := New(t.TempDir())
	var ids []string
	for day := range 5 {
		ids = append(ids, record(t, s, time.Date(2026, 1, 1+day, 0, 0, 0, 0, time.UTC)))
	}
	if err := s.dir.Prune(2, 0); err != nil {
		t.Fatal(err)
	}
	got, err := s.ids()
	if diff := cmp.Diff([]string{ids[4], ids[3]}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if rec, err := s.Read("20260105"); err != nil || rec.ID != ids[4] {
		t.Errorf("by prefix: %v, %v", rec, err)
	}
	if _, err := s.Read("2026"); err == nil || !strings.Contains(err.Error(), `2 runs in the history begin with "2026"`) {
		t.Errorf("several: %v", err)
	}
	for _, id := range []string{"x", "", "../" + ids[4]} {
		if rec, err := s.Read(id); !errors.Is(err, ErrNone) {
			t.Errorf("Read(%q) = %v, %v", id, rec, err)
		}
	}
}

// Pruning looks at every record, so it is not done for each run.
func TestPruneNowAndThen(t *testing.T) {
	s := New(t.TempDir())
	for _, tt := range []struct{ runs, left int }{{22, 22}, {23, 20}} {
		for count(t, s) < tt.runs {
			record(t, s, time.Date(2026, 1, 1, count(t, s), 0, 0, 0, time.UTC))
		}
		if err := s.dir.Prune(20, 0); err != nil || count(t, s) != tt.left {
			t.Errorf("of %d runs %d are left, want %d (%v)", tt.runs, count(t, s), tt.left, err)
		}
	}
}

func count(t *testing.T, s *Store) int {
	t.Helper()
	ids, err := s.ids()
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}

func TestNoHistoryYet(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "none"))
	if _, err := s.last(); !errors.Is(err, ErrNone) {
		t.Errorf("error = %v", err)
	}
}

func TestDir(t *testing.T) {
	env := map[string]string{"HOME": "/home/ann"}
	getenv := func(k string) string { return env[k] }
	for _, tt := range []struct{ state, want string }{
		{"", "/home/ann/.local/state/sshpace/runs"},
		{"relative", "/home/ann/.local/state/sshpace/runs"},
		{"/state", "/state/sshpace/runs"},
	} {
		env["XDG_STATE_HOME"] = tt.state
		if got := Dir(getenv); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.state, got, tt.want)
		}
	}
	if got := Dir(func(string) string { return "" }); got != "" {
		t.Errorf("without HOME: %q", got)
	}
}

// A record that cannot be written does not end the run; Close tells.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{ID: "x", file: full, lines: patient{w: full}}
	r.sink = output.NewRecord(&r.lines, output.How{})
	if err := r.Done(result(host.Host{Name: "a"}, 0), fleet.Summary{}); err != nil {
		t.Errorf("Done: %v", err)
	}
	if err := r.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("Close: %v", err)
	}
}

// cramped is a file on a disk that has room for so many bytes.
type cramped struct {
	bytes.Buffer
	room int
}

func (c *cramped) Write(p []byte) (int, error) {
	n, _ := c.Buffer.Write(p[:min(len(p), c.room)])
	if c.room -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// Where there is no room, a detached run starts no host, and its record becomes whole once there is
// room again: without output that came meanwhile.
func TestRoomAgain(t *testing.T) {
	var want string
	for room := range 1200 {
		disk := &cramped{room: room}
		r := &Recorder{ID: "x", lines: patient{w: disk}, room: 100, largest: 1e6, detached: true}
		r.sink = output.NewRecord(&r.lines, output.How{})
		list := hosts(t, "web[1-2]")
		begun := r.Begin(fleet.Start{ID: r.ID, Command: "uptime", Hosts: list}) == nil
		started := r.Started(0) == nil
		full := r.Err() != nil
		r.Output(fleet.Event{Host: "web1", Data: []byte("load\n")})
		r.Done(result(list[0], 0), fleet.Summary{})
		disk.room = 1e6
		second := r.Started(1) == nil
		res := result(list[1], 0)
		res.Index = 1
		r.Done(res, fleet.Summary{})
		r.Output(fleet.Event{Index: 1, Host: "web2", Data: []byte("late\n")})
		r.End(fleet.Summary{OK: 2})
		rec, err := readRecord(bytes.NewReader(disk.Bytes()))
		if err != nil || r.Err() != nil || len(rec.Results) != 2 || !rec.Finished || !second || started && !begun {
			t.Fatalf("room for %d: %v, %v, %+v", room, err, r.Err(), rec)
		}
		if full != (rec.Summary.Unkept == 10) || !full && rec.Summary.Unkept > 0 {
			t.Errorf("room for %d: full %v, %d bytes were not kept", room, full, rec.Summary.Unkept)
		}
		want = disk.String()
	}
	if !strings.Contains(want, "late") {
		t.Errorf("never enough room:\n%s", want)
	}
}

// A record does not grow beyond a multiple of the output that it may keep, however short lines are.
func TestShortLines(t *testing.T) {
	s := New(t.TempDir())
	r, err := s.start(time.Now(), output.How{Kept: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	list := hosts(t, "a")
	r.Begin(fleet.Start{ID: r.ID, Time: time.Now(), Hosts: list})
	lines := bytes.Repeat([]byte("\n"), 1<<15)
	for range 32 {
		r.Output(fleet.Event{Host: "a", Data: lines})
	}
	r.Done(result(list[0], 0), fleet.Summary{})
	r.End(fleet.Summary{OK: 1})
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(string(s.dir), r.ID+journal.Ending))
	if err != nil || info.Size() > 10<<20 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	if rec, err := s.last(); err != nil || rec.Summary.Unkept < 1<<19 {
		t.Errorf("%+v, %v", rec, err)
	}
}

// A run that cannot be ended from here is not, and says why; no process is signaled unless it is
// known to be the run's.
func TestStop(t *testing.T) {
	s, machine := New(t.TempDir()), "elsewhere"
	for _, tt := range []struct {
		how  output.How
		live bool
		want string
	}{
		{output.How{Detached: &output.Process{PID: os.Getpid(), Machine: machine}}, true, "goes on on another machine, elsewhere"},
		{output.How{}, true, "is not detached"},
		{output.How{Detached: &output.Process{PID: os.Getpid(), Machine: machine}}, false, ""},
	} {
		r, err := s.start(time.Now(), tt.how)
		if err != nil {
			t.Fatal(err)
		}
		r.Begin(fleet.Start{ID: r.ID, Time: time.Now(), Command: "true", Hosts: hosts(t, "a")})
		if !tt.live {
			r.Close(t.Context())
		}
		rec, err := s.Run(r.ID)
		if err == nil {
			rec, err = s.Stop(t.Context(), rec, false)
		}
		if tt.want == "" && (err != nil || rec.State() != "killed") || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %+v", err, rec)
		}
		r.Close(t.Context())
	}
}

// recordForever records results until somebody ends the process.
func recordForever(dir string) {
	list, err := hostset.Selection{Sets: []string{"n[1-100000]"}}.Hosts()
	if err != nil {
		panic(err)
	}
	r, err := New(dir).start(time.Now(), output.How{})
	if err != nil {
		panic(err)
	}
	r.Begin(fleet.Start{ID: r.ID, Time: time.Now(), Command: "true", Hosts: list})
	r.Started(len(list) - 1)
	for i := range len(list) - 1 {
		r.Started(i)
		r.Done(result(list[i], i%2), fleet.Summary{})
		if i == 1000 {
			fmt.Println("under way")
		}
	}
	select {}
}

func TestReadableAfterKill(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SSHPACE_TEST_RECORD_IN="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait() // ended by our signal
	ended := &closed{}
	rec, err := New(dir).Run("last")
	if err != nil {
		t.Fatal(err)
	}
	so, err := New(dir).Follow(t.Context(), rec, ended.view)
	if err == nil || !strings.HasSuffix(err.Error(), "was killed") || so.Total() < 1000 || ended.end != so {
		t.Errorf("followed to %+v, %+v, %v", so, ended.end, err)
	}
	failed, err := rec.hostsOf("failed")
	if err != nil || rec.Finished || len(rec.Results) < 1000 || len(failed) < 500 {
		t.Errorf("%v; finished %v, %d results, %d failed", err, rec.Finished, len(rec.Results), len(failed))
	}
	unfinished, err := rec.hostsOf("unfinished")
	if err != nil || len(unfinished) < 1 || len(unfinished) > 2 {
		t.Errorf("%v; %q were started and did not end", err, unfinished)
	}
	untouched, err := rec.hostsOf("not-started")
	if err != nil || len(unfinished)+len(untouched)+len(rec.Results) != 100_000 {
		t.Errorf("%v; %d unfinished, %d not started and %d with a result", err, len(unfinished), len(untouched), len(rec.Results))
	}
}

// closed is a view of a run that was followed.
type closed struct {
	fleet.Nothing
	hosts chan string
	end   fleet.Summary
}

func (c *closed) view(*Record, fleet.Start) (fleet.Sink, error) { return c, nil }

func (c *closed) Done(r fleet.Result, _ fleet.Summary) error {
	if c.hosts != nil {
		c.hosts <- r.Host.String()
	}
	return nil
}

func (c *closed) End(so fleet.Summary) error {
	c.end = so
	return nil
}

// A run is followed by its ID from its beginning, as it goes on, to its end.
func TestFollow(t *testing.T) {
	s, list := New(t.TempDir()), hosts(t, "web[1-2]")
	r, err := s.start(time.Now(), output.How{})
	if err != nil {
		t.Fatal(err)
	}
	r.Begin(fleet.Start{ID: r.ID, Time: time.Now(), Command: "true", Hosts: list})
	seen, done := &closed{hosts: make(chan string)}, make(chan fleet.Summary)
	rec, err := s.Run(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		so, err := s.Follow(t.Context(), rec, seen.view)
		if err != nil {
			t.Error(err)
		}
		done <- so
	}()
	for i, h := range list {
		r.Started(i)
		r.Done(result(h, i), fleet.Summary{})
		if got := <-seen.hosts; got != h.String() {
			t.Errorf("%s, want %s", got, h)
		}
	}
	want := fleet.Summary{OK: 1, Failed: 1, MaxExit: 1, Elapsed: time.Minute}
	r.End(want)
	r.Close(t.Context())
	if so := <-done; so != want || seen.end != want {
		t.Errorf("%+v, %+v, want %+v", so, seen.end, want)
	}
	stopped, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	stop(enough)
	if _, err := s.Follow(stopped, rec, (&closed{}).view); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// A record cut at any byte is read up to its last whole line, which may lack its end.
func TestTornRecord(t *testing.T) {
	dir := t.TempDir()
	id := record(t, New(dir), time.Now())
	whole, err := os.ReadFile(filepath.Join(dir, id+journal.Ending))
	if err != nil {
		t.Fatal(err)
	}
	first := strings.IndexByte(string(whole), '\n')
	for cut := range len(whole) {
		rec, err := readRecord(strings.NewReader(string(whole[:cut])))
		if cut < first {
			if err == nil {
				t.Fatalf("cut at %d: no error without a first line", cut)
			}
			continue
		}
		lines := strings.Split(string(whole[first:cut]), "\n")
		if last := len(lines) - 1; !json.Valid([]byte(lines[last])) {
			lines = lines[:last]
		}
		if want := strings.Count(strings.Join(lines, "\n"), `"type":"result"`); err != nil || len(rec.Results) != want {
			t.Fatalf("cut at %d: %v, %v; want %d results", cut, rec, err, want)
		}
	}
}

func TestDamageIsAnError(t *testing.T) {
	for _, text := range []string{"", "{}\n", "not json\n", `{"type":"run","schema":"sshpace.run/9","id":"x","start":"2026-01-01T00:00:00Z","set":"a","how":{}}` + "\n",
		`{"type":"run","schema":"sshpace.run/1","id":"x","start":"2026-01-01T00:00:00Z","set":"n[1-","how":{}}` + "\n",
		`{"type":"run","schema":"sshpace.run/1","id":"x","start":"2026-01-01T00:00:00Z","set":"a"}` + "\n",
		`{"type":"run","schema":"sshpace.run/1","id":"x","start":"2026-01-01T00:00:00Z","set":"a","how":{}}` + "\nbroken\n{}\n"} {
		if rec, err := readRecord(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %+v", text, rec)
		}
	}
}

// Whatever a file holds, reading it ends in an error or in sets that only name hosts of the run.
func FuzzReadRecord(f *testing.F) {
	f.Add(`{"type":"run","schema":"sshpace.run/1","id":"x","start":"2026-01-01T00:00:00Z","set":"a[1-3]","how":{}}` + "\n" + `{"type":"result","host":"a1","status":"failed","exit":1}` + "\n" + `{"type":"summary"}` + "\n")
	f.Add("{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		rec, err := readRecord(strings.NewReader(text))
		if err != nil {
			return
		}
		for set, n := range rec.counts() {
			if n > len(rec.Hosts) {
				t.Fatalf("%d of %d hosts are %s", n, len(rec.Hosts), set)
			}
		}
	})
}

// The record of a run that launchers continue is written anew, but for its beginning.
func TestRewrite(t *testing.T) {
	s, list := New(t.TempDir()), hosts(t, "web[1-3]")
	r, err := s.start(time.Now(), output.How{Job: "abc234", Kept: 100})
	if err != nil {
		t.Fatal(err)
	}
	r.Begin(fleet.Start{ID: r.ID, Time: time.Now(), Command: "uptime", Hosts: list})
	r.Done(result(list[2], 1), fleet.Summary{})
	rec, err := s.Read(r.ID)
	if err != nil || !rec.Live {
		t.Fatal(rec, err)
	}
	if _, err := s.Rewrite(rec); err == nil || !strings.Contains(err.Error(), "being written") {
		t.Errorf("while its process lives: %v", err)
	}
	r.Close(t.Context())
	if rec, err = s.Read(r.ID); err != nil || rec.State() != "left" || rec.OfHub() != r.ID+"-abc234" {
		t.Fatal(rec, err)
	}
	again, err := s.Rewrite(rec)
	if err != nil {
		t.Fatal(err)
	}
	again.Begin(fleet.Start{ID: "other", Time: time.Now(), Command: "other", Hosts: list})
	again.Output(fleet.Event{Index: 1, Data: []byte("said\n")})
	for i, h := range list {
		again.Done(result(h, i), fleet.Summary{})
	}
	again.End(fleet.Summary{OK: 1, Failed: 2})
	if err := again.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(string(s.dir), rec.ID+journal.Ending))
	if err != nil || !strings.Contains(string(text), `"text":"said"`) {
		t.Errorf("%v\n%s", err, text)
	}
	now, err := s.run("last", s.ids)
	if err != nil || !now.Finished || now.State() != "done" || now.Command != "uptime" || !now.Start.Equal(rec.Start) || len(now.Results) != 3 || now.How.Job != "abc234" || now.Summary.Unkept > 0 {
		t.Errorf("%+v, %v", now, err)
	}
	if now.Summary = (fleet.Summary{OK: 1, NotStarted: 2}); now.State() != "stopped" {
		t.Errorf("with hosts that were not started it is %s", now.State())
	}
}

// A run that could not begin leaves no record.
func TestDrop(t *testing.T) {
	s := New(t.TempDir())
	r, err := s.start(time.Now(), output.How{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Drop(); err != nil || count(t, s) != 0 {
		t.Errorf("%d are left, %v", count(t, s), err)
	}
}
