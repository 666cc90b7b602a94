package anonymize_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/record/anonymize"
)

// fill puts a text of its own into every string of a value, one element into every list and one key
// into every map, so that a field that somebody adds to the format is tried too.
func fill(v reflect.Value, texts *int) {
	switch v.Kind() {
	case reflect.String:
		*texts++
		v.SetString(fmt.Sprintf("secret%d", *texts))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 3, 4, 13, 37, 42, 4242, time.FixedZone("home", 3600))))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), texts)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), texts)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item, texts)
		v.SetMapIndex(reflect.Zero(v.Type().Key()), item)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), texts)
	}
}

func text(t *testing.T, f *record.File) string {
	t.Helper()
	var all strings.Builder
	for r := range f.Records() {
		if err := record.Write(&all)(r); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

func TestNoTextComesThrough(t *testing.T) {
	var f record.File
	texts := 0
	fill(reflect.ValueOf(&f).Elem(), &texts)
	before := text(t, &f)
	if texts < 60 || strings.Count(before, "secret") < 60 {
		t.Fatalf("only %d texts", texts)
	}
	after := text(t, anonymize.File(&f))
	for _, part := range []string{"secret", "home", "+01:00", "13:37", "12:37", ":42"} {
		if strings.Contains(after, part) {
			t.Errorf("%q in %s", part, after)
		}
	}
	if text(t, &f) != before {
		t.Error("the result itself was changed")
	}
}

func TestWhatIsKept(t *testing.T) {
	start := time.Date(2026, 3, 4, 13, 37, 42, 0, time.UTC)
	suite := alg.NewSuite("aes128-ctr", "hmac-of-joe", "curve25519-sha256")
	f := &record.File{
		Campaign: record.Campaign{Target: "joe@box", Started: start, Tool: "0.1.0 (abcdef)", Policy: "modern", Seed: 7},
		Environment: record.Environment{
			OS: "linux", Kernel: "6.1.0-box", CPU: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz of joe", Client: "OpenSSH_9.2p1 Debian-2+deb12u6",
			ClientPath: "/usr/bin/ssh", Server: "OpenSSH_8.0 joes build", ServerPath: "/home/joe/sshd", Crypto: "OpenSSL 3.0.19 27 Jan 2026",
			Hypervisor: "Microsoft Hv", Limits: []string{"joe"},
		},
		Trials: map[int]record.Trial{
			1: {ID: 1, Target: "joe@box", Want: suite}, 2: {ID: 2, Target: "joe@other", Want: suite}, 3: {ID: 3, Target: "box", Want: suite},
		},
		Samples:      []record.Sample{{Trial: 2, Got: suite, Start: start.Add(3 * time.Second), Outcome: record.Denied, Detail: "joe: Permission denied"}},
		Measurements: []record.Measurement{{Name: "AES-128-CTR 1024", Source: "openssl speed"}, {Name: record.DiskLarge}, {Name: record.MemoryCopy}, {Name: "joe 1024"}},
	}
	got := anonymize.File(f)
	e := got.Environment
	for _, check := range []struct{ got, want string }{
		{got.Campaign.Target, "user1@host1"}, {got.Trials[1].Target, "user1@host1"}, {got.Trials[2].Target, "user1@host2"}, {got.Trials[3].Target, "host1"},
		{got.Campaign.Started.String(), "2026-03-04 00:00:00 +0000 UTC"}, {got.Samples[0].Start.String(), "2026-03-04 00:00:03 +0000 UTC"},
		{got.Campaign.Tool, "0.1.0"}, {got.Campaign.Policy, "modern"}, {e.Kernel, "6.1.0"}, {e.CPU, "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz"},
		{e.Client, "OpenSSH_9.2p1"}, {e.ClientPath, "/usr/bin/ssh"}, {e.Server, "OpenSSH_8.0"}, {e.ServerPath, "path1"}, {e.Crypto, "OpenSSL 3.0.19"},
		{e.Hypervisor, "Microsoft Hv"}, {got.Trials[1].Want.String(), "aes128-ctr unknown-mac1 curve25519-sha256"},
		{string(got.Samples[0].Outcome), "denied"}, {got.Samples[0].Detail, ""},
		{got.Measurements[0].Name, "AES-128-CTR 1024"}, {got.Measurements[1].Name, record.DiskLarge}, {got.Measurements[2].Name, record.MemoryCopy},
		{got.Measurements[3].Name, "measurement1"},
	} {
		if check.got != check.want {
			t.Errorf("%q, want %q", check.got, check.want)
		}
	}
}
