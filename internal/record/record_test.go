package record_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/sys/journal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// oneOfEach is a small file with every kind of record and every field set.
func oneOfEach() []record.Record {
	at := time.Date(2026, 11, 21, 20, 1, 2, 345_678_901, time.UTC)
	cpu, core := 7*time.Millisecond, 1
	suite := alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha2-256", Kex: "curve25519-sha256", HostKey: "ssh-ed25519"}
	return []record.Record{
		&record.Campaign{
			Format: record.FormatVersion, Tool: "1.2.3", Started: at, Seed: 42, Target: "loopback", Engine: "openssh", Server: "openssh",
			Directions: []record.Direction{record.Upload, record.Download}, Data: "zero", BudgetNS: time.Minute, Precision: 2.5, Rounds: 3,
			SizeBytes: 1 << 20, Policy: "modern",
			Offer:  alg.Offer{Ciphers: []string{"aes128-ctr"}, MACs: []string{"hmac-sha2-256"}, Kex: []string{"curve25519-sha256"}, HostKeys: []string{"ssh-ed25519"}},
			Combos: alg.Combinations{Total: 1, Bulk: 1, Kex: 1},
		},
		&record.Environment{
			OS: "linux", Kernel: "6.1.0", Arch: "amd64", CPU: "Some CPU", CPUFeatures: []string{"aesni", "vaes"}, Cores: 2, CPUQuota: 1.5,
			Governor: "performance", Hypervisor: "kvm", MemoryBytes: 8 << 30, StealPct: 0.5, LoadAverage: 1.25, TickNS: time.Microsecond,
			CPUClock: "perf task-clock", Client: "OpenSSH_9.2p1", ClientPath: "/usr/bin/ssh", Server: "OpenSSH_9.2p1", ServerPath: "/usr/sbin/sshd",
			Crypto: "OpenSSL 3.0.19", ServerBanner: "SSH-2.0-OpenSSH_9.2p1", ServerMachine: "Linux", Limits: []string{"no perf events"},
		},
		&record.Trial{
			ID: 7, Target: "loopback", Want: suite, Workload: record.Copy, Direction: record.Upload, SizeBytes: 1024,
			Round: 2, Role: record.RoleControl, Pair: 1, Offered: alg.Suite{Cipher: "aes128-ctr", MAC: "umac-64@openssh.com"},
		},
		&record.Sample{
			Trial: 7, Got: suite, Start: at, ElapsedNS: 400 * time.Millisecond, Outcome: record.Broken, Detail: "cut", Bytes: 4096, Rekeys: 1,
			ClientCPUNS: &cpu, ServerCPUNS: &cpu,
			Phases: &record.Phases{LoginNS: 90 * time.Millisecond, ClientCPUNS: &cpu, ServerCPUNS: &cpu},
		},
		&record.Slices{Sitting: 1, Start: time.Date(2026, 11, 21, 20, 1, 4, 0, time.UTC), SpanNS: time.Second, ForeignCPUNS: &cpu, Slices: []record.Slice{
			{Trial: 7, Round: 1, StartNS: 3 * time.Millisecond, WallNS: 2 * time.Millisecond, Bytes: 1 << 20, ClientCPUNS: &cpu, ServerCPUNS: &cpu, HarnessCPUNS: 4},
		}},
		&record.Subject{ID: 1, Method: &record.Method{
			Mode: record.ModePipe, Direction: record.Upload, Client: "openssh 9.2p1", Server: "openssh 9.2p1", Suite: suite, Streams: 4, Files: 10, FileBytes: 1 << 10,
			Compression: true, SizeBytes: 1 << 20, Why: "not installed", Path: record.Path{RTT: time.Millisecond, BytesPerS: 1e6, SegmentsLost: 0.01},
		}},
		&record.Reading{Subject: 1, Kind: record.LongRun, Start: at, WallNS: time.Second, ClientCPUNS: &cpu, ServerCPUNS: &cpu, VerifiedNS: cpu},
		&record.Subject{ID: 2, LoginKind: &record.LoginKind{Factor: "key exchange", Level: "curve25519-sha256", Like: 1, Conditions: "alike", RoundTrips: 9}},
		&record.Reading{
			Subject: 2, Start: at, Core: &core, WallNS: time.Second, Phases: []record.LoginPhase{{Phase: record.PhaseTCP, WallNS: time.Second}}, ClientCPUNS: &cpu,
			UpBytes: 1, DownBytes: 2, Stalls: []record.LoginStall{{Side: "server", AtNS: cpu, WallNS: cpu, Why: "wait"}}, Failure: "cut",
		},
		&record.Host{
			Name: "web1", Via: []string{"gate"}, Start: at, Attempts: 1, WaitedNS: cpu, Banner: "SSH-2.0-OpenSSH_9.2p1", RTTNS: cpu, Suite: suite,
			Offer:  alg.Offer{Ciphers: []string{"aes128-ctr"}, MACs: []string{"hmac-sha2-256"}, Kex: []string{"curve25519-sha256"}, HostKeys: []string{"ssh-ed25519"}},
			WallNS: time.Second, Phases: []record.LoginPhase{{Phase: record.PhaseSign, WallNS: time.Second, BusyNS: cpu, Unended: true}}, SigningNS: cpu, VainNS: cpu, Exit: &core,
			Class: "timeout", Failure: "timed out", Causes: []record.Cause{{Check: "account", What: "it hangs", CostNS: cpu, Breaks: true, Where: "there", Do: "look"}},
		},
		&record.Limit{Mode: record.ModePipe, Direction: record.Upload, Suite: suite, What: record.LimitLink, Sentence: "it is", Help: "none", Evidence: record.Evidence{BytesPerSecond: 1e6}},
		&record.Thermal{At: at, Zones: []record.ThermalZone{{Name: "cpu", Celsius: 48}}, ClockHz: []int64{1e9}, ClockMaxHz: 2e9, Throttled: []string{record.TooHot}},
		&record.Measurement{Source: "dd", Name: "pipe", Unit: record.BytesPerSecond, Value: 2, Lo: 1, Hi: 3, N: 3},
		&record.Finding{What: "this", Why: "that", Evidence: "so", Fix: "do"},
		&record.End{Why: "budget"},
	}
}

// file is the file that holds the records.
func file(t testing.TB, records []record.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	sink := record.Write(&b)
	for _, r := range records {
		if err := sink(r); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// collect drains Read; the error is the last that it yielded.
func collect(records iter.Seq2[record.Record, error]) (list []record.Record, last error) {
	for r, err := range records {
		if last = err; err != nil {
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}

// The format is a promise to files that exist. Where this fails, either the change is a mistake, or
// it is a new FormatVersion; new optional fields are the only thing that may be added with -update.
func TestFormatIsGolden(t *testing.T) {
	golden := filepath.Join("testdata", "one_of_each.jsonl")
	got := file(t, oneOfEach())
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the record format changed (-want +got):\n%s", diff)
	}
	records, err := collect(record.Read(bytes.NewReader(want)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(oneOfEach(), records); diff != "" {
		t.Errorf("the golden file reads as something else (-want +got):\n%s", diff)
	}
}

// A file that was cut anywhere yields every record before the cut, and says that it was cut unless
// the cut is at a line end (or only took the line end).
func TestCutAtEveryByte(t *testing.T) {
	records := oneOfEach()
	whole := file(t, records)
	first := bytes.IndexByte(whole, '\n')
	for cut := range whole {
		part := whole[:cut]
		got, err := collect(record.Read(bytes.NewReader(part)))
		lines := bytes.Count(part, []byte("\n"))
		var format *record.FormatError
		switch {
		case cut < first:
			if !errors.As(err, &format) || len(got) != 0 {
				t.Fatalf("cut at %d in the first line: %d records, error %v; want a FormatError", cut, len(got), err)
			}
			continue
		case whole[cut] == '\n': // only the line end is missing
			lines++
			fallthrough
		case whole[cut-1] == '\n':
			if err != nil {
				t.Fatalf("cut at %d, a line end: %v", cut, err)
			}
		case !errors.Is(err, journal.ErrTruncated):
			t.Fatalf("cut at %d: error %v, want ErrTruncated", cut, err)
		}
		if diff := cmp.Diff(records[:lines], got); diff != "" {
			t.Fatalf("cut at %d (-want +got):\n%s", cut, diff)
		}
		f, err := record.Load(bytes.NewReader(part))
		if err != nil || f.Truncated != (whole[cut] != '\n' && whole[cut-1] != '\n') {
			t.Fatalf("Load of a file cut at %d: truncated %v, %v", cut, f.Truncated, err)
		}
	}
}

const campaign = `{"campaign":{"format":3,"tool":"x"}}` + "\n"

func TestReadRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"empty":                {"", "the file is empty"},
		"foreign":              {"Dear diary\nyes\n", "line 1: not a record"},
		"foreign, no line end": {"Dear diary", "line 1: not a record"},
		"foreign JSON":         {`{"name":"x"}` + "\n", "line 1: not a record file of sshpace"},
		"JSON list":            {"[1,2]\n", "line 1: not a record"},
		"JSON null":            {"null\n", "line 1: not a record file of sshpace"},
		"binary":               {"\x7fELF\x02\x01\x01", "line 1: not a record"},
		"newer":                {`{"campaign":{"format":4}}` + "\n", "format 4 is newer than this version reads (3)"},
		"older":                {`{"campaign":{"format":1}}` + "\n", "format 1 is no longer read, only 2 and later; measure again"},
		"no subject":           {campaign + `{"reading":{"subject":1,"wall_ns":1}}` + "\n", "line 2: a reading of subject 1, which is not in the file"},
		"of no kind":           {campaign + `{"subject":{"id":1}}` + "\n", "line 2: subject 1 is neither a transfer method nor a kind of login"},
		"of two kinds":         {campaign + `{"subject":{"id":1,"mode":"pipe","level":"plain"}}` + "\n", "line 2: subject 1 is neither"},
		"no format":            {`{"campaign":{}}` + "\n", "no format version"},
		"trial first":          {`{"trial":{"id":1}}` + "\n", "the first line is not a campaign"},
		"two kinds":            {campaign + `{"trial":{"id":1},"sample":{"trial":1}}` + "\n", "line 2: 2 kinds of record"},
		"no kind":              {campaign + "{}\n", "line 2: no kind of record that this version knows"},
		"two on a line":        {campaign + `{"trial":{"id":1}}{"trial":{"id":2}}` + "\n", "line 2: not a record"},
		"empty line":           {campaign + "\n" + `{"trial":{"id":1}}` + "\n", "line 2: not a record"},
		"damaged in between":   {campaign + `{"trial":{"id"` + "\n" + `{"trial":{"id":2}}` + "\n", "line 2: not a record"},
		"two runs":             {campaign + campaign, "line 2: a second campaign"},
		"wrong type":           {campaign + `{"trial":{"id":"one"}}` + "\n", "line 2: not a record"},
		"long line":            {campaign + strings.Repeat("x", journal.MaxLine+2), "line 2: longer than 16777216 bytes"},
		"long first line":      {strings.Repeat("x", journal.MaxLine+2), "line 1: longer than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.Load(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load: %v; want an error with %q", err, tt.want)
			}
		})
	}
}

// Methods, kinds of login and the readings of either had records of their own in format 2.
func TestFormat2(t *testing.T) {
	before := `{"campaign":{"format":2}}` + "\n" + `{"method":{"id":1,"mode":"pipe","direction":"upload","suite":{"cipher":"aes128-ctr"},"size_bytes":7,"path_rtt_ns":5}}` + "\n" +
		`{"run":{"method":1,"kind":"long","start":"2026-11-21T20:01:02Z","wall_ns":9,"client_cpu_ns":3,"verified_ns":2}}` + "\n" +
		`{"login_kind":{"id":2,"level":"plain","round_trips":9}}` + "\n" +
		`{"login_run":{"kind":2,"start":"2026-11-21T20:01:02Z","core":1,"wall_ns":8,"phases":[{"phase":"tcp","wall_ns":8}],"up_bytes":4,"failure":"cut"}}` + "\n"
	after := strings.NewReplacer(`{"method":{"id"`, `{"subject":{"id"`, `{"run":{"method"`, `{"reading":{"subject"`, `{"login_kind"`, `{"subject"`, `{"login_run":{"kind"`, `{"reading":{"subject"`).Replace(before)
	old, err := record.Load(strings.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	now, err := record.Load(strings.NewReader(after))
	if diff := cmp.Diff(now, old); diff != "" || err != nil || len(old.Methods()) != 1 || len(old.Logins()) != 1 || len(old.Readings) != 2 {
		t.Errorf("%v, %+v (-format 3 +format 2):\n%s", err, old, diff)
	}
	if _, err := record.Load(strings.NewReader(`{"campaign":{"format":2}}` + "\n" + `{"run":{"method":"one"}}` + "\n")); err == nil || !strings.Contains(err.Error(), "line 2: not a record") {
		t.Errorf("a wrong type: %v", err)
	}
}

func TestByteOrderMark(t *testing.T) {
	f, err := record.Load(strings.NewReader(record.ByteOrderMark + `{"campaign":{"format":2,"target":"x"}}` + "\n"))
	if err != nil || f.Campaign.Target != "x" {
		t.Errorf("a file that an editor marked as UTF-8: %+v, %v", f, err)
	}
}

func TestResultsJoinTrialsAndSamples(t *testing.T) {
	f, err := record.Load(strings.NewReader(campaign +
		`{"trial":{"id":1,"round":5}}` + "\n" + `{"trial":{"id":2,"round":6}}` + "\n" + `{"sample":{"trial":2,"bytes":7}}` + "\n" + `{"sample":{"trial":1,"bytes":8}}` + "\n" + `{"trial":{"id":3}}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for trial, s := range f.Results() {
		got = append(got, fmt.Sprintf("%d:%d:%d", trial.ID, trial.Round, s.Bytes))
	}
	if want := "[2:6:7 1:5:8]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// Two names of one computation are one cell, and a control asks for the other name.
func TestCellsAndWhatIsAsked(t *testing.T) {
	want := alg.Suite{Cipher: "aes128-gcm@openssh.com", Kex: "curve25519-sha256"}
	other := alg.Suite{Cipher: "aes128-gcm@openssh.com", MAC: "hmac-md5", Kex: "curve25519-sha256@libssh.org"}
	plain, control := record.Trial{Want: want, Direction: record.Upload}, record.Trial{Want: want, Offered: other, Direction: record.Upload}
	if plain.Asked() != want || control.Asked() != other {
		t.Errorf("asked %s and %s", plain.Asked(), control.Asked())
	}
	if a, b := plain.Cell(), record.CellOf(other, record.Upload); a != b || a.Suite != (alg.Suite{Cipher: "aes128-gcm@openssh.com"}) {
		t.Errorf("cells %v and %v", a, b)
	}
}

func TestLoadWantsTheTrialOfASample(t *testing.T) {
	_, err := record.Load(strings.NewReader(campaign + `{"sample":{"trial":3}}` + "\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2: a sample of trial 3") {
		t.Errorf("Load: %v", err)
	}
}

// A newer sshpace may add fields without a new format.
func TestUnknownFieldsArePassedOver(t *testing.T) {
	f, err := record.Load(strings.NewReader(`{"campaign":{"format":2,"seed":5,"moon":"full"}}` + "\n"))
	if err != nil || f.Campaign.Seed != 5 {
		t.Errorf("Load: %+v, %v", f, err)
	}
}

// A line as long as the limit, its end included, is read.
func TestLongestLine(t *testing.T) {
	const frame = `{"finding":{"what":""}}`
	what := strings.Repeat("w", journal.MaxLine-len(frame)-1)
	f, err := record.Load(strings.NewReader(campaign + `{"finding":{"what":"` + what + `"}}` + "\n"))
	if err != nil || len(f.Findings) != 1 || f.Findings[0].What != what {
		t.Fatalf("Load of a line of %d bytes: %v", journal.MaxLine, err)
	}
}

// failing is a disk that is full after some bytes.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestSinks(t *testing.T) {
	records := oneOfEach()
	var memory record.File
	memory.Trials = map[int]record.Trial{}
	var order []string
	note := func(name string) record.Sink {
		return func(record.Record) error { order = append(order, name); return nil }
	}
	disk := &failing{left: len(file(t, records[:2]))}
	sink := record.Tee(note("a"), record.Write(disk), memory.Sink(), note("b"))
	var err error
	for i, r := range records {
		if err = sink(r); err != nil {
			if i != 2 {
				t.Errorf("record %d: %v", i, err)
			}
			break
		}
	}
	if !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Tee hides the error of a sink: %v", err)
	}
	if want := "[a b a b a]"; fmt.Sprint(order) != want {
		t.Errorf("order of sinks is %v, want %s", order, want)
	}
	if memory.Campaign.Seed != 42 || memory.Environment.Cores != 2 || len(memory.Trials) != 0 {
		t.Errorf("memory holds %+v", memory)
	}
}

// Each record is one Write, so that a full disk or a kill cuts at most a line.
func TestOneWritePerRecord(t *testing.T) {
	writes := 0
	sink := record.Write(writerFunc(func(p []byte) (int, error) {
		if writes++; bytes.Count(p, []byte("\n")) != 1 || p[len(p)-1] != '\n' {
			t.Errorf("write %q is not one line", p)
		}
		return len(p), nil
	}))
	for _, r := range append(oneOfEach(), &record.Finding{What: "two\nlines"}) {
		if err := sink(r); err != nil {
			t.Fatal(err)
		}
	}
	if want := len(oneOfEach()) + 1; writes != want {
		t.Errorf("%d writes for %d records", writes, want)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// What is written is what is read, whatever text the records hold.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.String()
		duration := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "ns")) })
		maybe := rapid.Ptr(duration, true)
		records := oneOfEach()[:1]
		for id := 1; id <= rapid.IntRange(0, 5).Draw(t, "trials"); id++ {
			records = append(records, &record.Trial{
				ID: id, Target: word.Draw(t, "target"), Want: alg.Suite{Cipher: word.Draw(t, "cipher")}, Workload: record.Copy,
				Round: rapid.Int().Draw(t, "round"),
			}, &record.Sample{
				Trial: id, Detail: word.Draw(t, "detail"), Outcome: record.OK, ElapsedNS: duration.Draw(t, "elapsed"), Start: time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "start"), 0).UTC(),
				ClientCPUNS: maybe.Draw(t, "client"), ServerCPUNS: maybe.Draw(t, "server"),
			})
		}
		var b bytes.Buffer
		sink := record.Write(&b)
		for _, r := range records {
			if err := sink(r); err != nil {
				t.Fatal(err)
			}
		}
		got, err := collect(record.Read(&b))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(valid(records), got); diff != "" {
			t.Fatalf("(-written +read):\n%s", diff)
		}
	})
}

// valid replaces what JSON cannot hold: bytes that are no UTF-8.
func valid(records []record.Record) []record.Record {
	for _, r := range records {
		switch r := r.(type) {
		case *record.Trial:
			r.Target = strings.ToValidUTF8(r.Target, "\ufffd")
			r.Want.Cipher = strings.ToValidUTF8(r.Want.Cipher, "\ufffd")
		case *record.Sample:
			r.Detail = strings.ToValidUTF8(r.Detail, "\ufffd")
		}
	}
	return records
}

// Reading what nobody wrote never panics, always ends, and what it takes for records can be written
// again.
func FuzzRead(f *testing.F) {
	f.Add(file(f, oneOfEach()))
	f.Add([]byte(campaign + `{"sample":{"trial":1`))
	f.Add([]byte(campaign + `{"login_run":{"kind":1,"failure":"cut"}}`))
	f.Add([]byte("Dear diary"))
	f.Add([]byte(`{"campaign":{"format":2}}` + "\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := collect(record.Read(bytes.NewReader(data)))
		if err == nil && len(records) == 0 {
			t.Fatal("no record and no error")
		}
		again, err := collect(record.Read(bytes.NewReader(file(t, records))))
		if len(records) == 0 {
			return
		}
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		if diff := cmp.Diff(records, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-first +second):\n%s", diff)
		}
	})
}
