package output

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

func TestJSON(t *testing.T) {
	var o bytes.Buffer
	start := time.Date(2026, 11, 21, 20, 0, 0, 5, time.UTC)
	j := newJSON(&o)
	list := []host.Host{{Name: "web1"}, {Name: "web2"}, {Name: "web3"}}
	if err := errors.Join(j.Begin(fleet.Start{ID: "r1", Time: start, Command: "uptime && echo <b>", Hosts: list}), j.Started(1)); err != nil {
		t.Fatal(err)
	}
	ok := exited(0, "web1", 0)
	ok.Start, ok.Addr, ok.Engine = start, "192.0.2.1:22", "native"
	ok.Spent[fleet.PhaseAuth] = 1500
	ok.OutBytes = 8
	killed := exited(2, "web3", -1)
	killed.Signal = "TERM"
	play(t, j, out(0, "web1", "gr\u00fc\u00dfe\nA\xff"), ok, refused(1, "web2"), killed)
	if err := j.End(fleet.Summary{OK: 1, Failed: 1, Unreachable: 1, MaxExit: 255, Elapsed: time.Second}); err != nil {
		t.Fatal(err)
	}
	want := `{"type":"run","schema":"sshpace.run/1","id":"r1","start":"2026-11-21T20:00:00.000000005Z","command":"uptime && echo <b>","hosts":3}
{"type":"start","schema":"sshpace.run/1","host":"web2"}
{"type":"output","schema":"sshpace.run/1","host":"web1","stream":"stdout","text":"grüße"}
{"type":"output","schema":"sshpace.run/1","host":"web1","stream":"stdout","base64":"Qf8=","eol":false}
{"type":"result","schema":"sshpace.run/1","host":"web1","addr":"192.0.2.1:22","engine":"native","status":"ok","phase":"exit","ran":"yes","exit":0,"attempts":1,"start":"2026-11-21T20:00:00.000000005Z","elapsed_ns":1000000000,"waited_ns":0,"phases_ns":{"auth":1500},"stdout_bytes":8,"stderr_bytes":0}
{"type":"result","schema":"sshpace.run/1","host":"web2","status":"unreachable","phase":"connect","ran":"no","class":"refused","error":"connection refused","hint":"is sshd running there?","attempts":1,"elapsed_ns":0,"waited_ns":0,"stdout_bytes":0,"stderr_bytes":0}
{"type":"result","schema":"sshpace.run/1","host":"web3","status":"failed","phase":"exit","ran":"yes","signal":"TERM","attempts":1,"elapsed_ns":3000000000,"waited_ns":0,"stdout_bytes":0,"stderr_bytes":0}
{"type":"summary","schema":"sshpace.run/1","ok":1,"failed":1,"unreachable":1,"not_started":0,"max_exit":255,"elapsed_ns":1000000000}
`
	if diff := cmp.Diff(want, o.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever is sent comes back exactly, and the text of the records is safe to show on a terminal.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{"plain", "tag \U000e0041\u200b", "a\n", "a\r\n", "a\r", "\n\n", "\r\n\r", strings.Repeat("x", 3*defaultMaxLine), strings.Repeat("x", defaultMaxLine) + "\n"} {
		f.Add([]byte(seed))
	}
	f.Add([]byte("\x1b]0;t\x07\u009b\u202e\x7f\u2028 \xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o bytes.Buffer
		j := newJSON(&o)
		half := len(data) / 2
		play(t, j, out(0, "a", string(data[:half])), out(0, "a", string(data[half:])), exited(0, "a", 0))
		for _, r := range strings.ReplaceAll(o.String(), "\n", "") {
			if r < 0x20 || r >= 0x7f && r <= 0x9f || r == 0x202e || r == 0x2028 {
				t.Fatalf("record %q holds %U", o.String(), r)
			}
		}
		if got := sent(t, o.String()); !bytes.Equal(got, data) {
			t.Fatalf("sent %q, got %q", data, got)
		}
	})
}

// sent puts a stream together again, as the comment of JSON says.
func sent(t *testing.T, records string) []byte {
	t.Helper()
	var all []byte
	end := false // of a line, before which nothing follows
	for line := range strings.Lines(records) {
		var rec struct {
			Type, Text, Base64 string
			Continues          bool
			EOL                *bool
		}
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Type != "output" {
			continue
		}
		if end && !rec.Continues {
			all = append(all, '\n')
		}
		text := []byte(rec.Text)
		if rec.Base64 != "" {
			var err error
			if text, err = base64.StdEncoding.DecodeString(rec.Base64); err != nil {
				t.Fatal(err)
			}
		}
		all, end = append(all, text...), rec.EOL == nil
	}
	if end {
		all = append(all, '\n')
	}
	return all
}
