package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/knownhosts/check"
)

func TestGatherFolds(t *testing.T) {
	var o, e bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: &e, Mask: true})
	for i := range 3 {
		name := fmt.Sprintf("web%d.example", i+1)
		play(t, g, out(i, name, fmt.Sprintf("I am web%d of %s\nsame", i+1, name)), exited(i, name, 0))
	}
	play(t, g,
		out(3, "db1", "different\x1b[31m\n"), stderr(3, "db1", "warning\n"), exited(3, "db1", 2),
		stderr(4, "db2", "warning\n"), exited(4, "db2", 2),
		out(6, "w1", "kernel 6.1\n"), exited(6, "w1", 0), out(5, "w2", "kernel "), out(5, "w2", "6.1"), exited(5, "w2", 0),
		refused(7, "gone"))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	wantOut := `---------------
web[1-3].example (3), names shown as <host>
---------------
| I am <host> of <host>
| same
---------------
w[1-2] (2)
---------------
| kernel 6.1
---------------
db1 (1)
---------------
| different
---------------
db2 (1), no standard output
---------------
`
	wantErr := `---------------
db[1-2] (2), standard error
---------------
| warning
db[1-2] (2) =: exit 2
gone (1) =: unreachable: connection refused
hint: is sshd running there?
`
	if diff := cmp.Diff(wantOut, o.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantErr, e.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

// What hosts sent alike is one group and stays as it is, though the names of some are in it; only
// beside that, and where it is asked for, are names left out of account.
// Whoever draws groups in another way gets their titles and texts apart from each other.
func TestGatherHandsGroupsOver(t *testing.T) {
	var ends strings.Builder
	groups := map[string]*strings.Builder{}
	g := newGather(gatherOptions{Out: &ends, Err: &ends, Groups: func(title string) io.Writer {
		groups[title] = &strings.Builder{}
		return groups[title]
	}})
	forged := rule + "\nweb9 (1)\n" + rule + "\n| x\nweb9 (1) =: exit 7\n"
	play(t, g, out(0, "web1", forged), exited(0, "web1", 0), out(1, "web2", "a\x1b[2Jb\n"), stderr(1, "web2", "oh\n"), exited(1, "web2", 3))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	for title, want := range map[string]string{"web1 (1)": forged, "web2 (1)": "ab\n", "web2 (1), standard error": "oh\n"} {
		if text := groups[title]; text == nil || text.String() != want {
			t.Errorf("%s says %v, want %q", title, text, want)
		}
	}
	if len(groups) != 3 || ends.String() != "web2 (1) =: exit 3\n" {
		t.Errorf("%d groups, and %q", len(groups), ends.String())
	}
}

func TestGatherKeepsWhatWasSent(t *testing.T) {
	const block = rule + "\n%s\n" + rule + "\n"
	same, roles := "| 10.0.0.1 app1\n| 10.0.0.2 app2\n", "| role=app%d\n"
	for _, tt := range []struct {
		opt  gatherOptions
		text func(host int) string
		want string
	}{
		{gatherOptions{}, func(int) string { return same }, fmt.Sprintf(block, "app[1-3] (3)") + same},
		{gatherOptions{Diff: true}, func(int) string { return same }, fmt.Sprintf(block, "app[1-3] (3)") + same},
		{gatherOptions{Mask: true}, func(int) string { return same }, fmt.Sprintf(block, "app[1-3] (3)") + same},
		{gatherOptions{}, func(host int) string { return fmt.Sprintf(roles, host) },
			fmt.Sprintf(block+roles+block+roles+block+roles, "app1 (1)", 1, "app2 (1)", 2, "app3 (1)", 3)},
		{gatherOptions{Mask: true}, func(host int) string { return fmt.Sprintf(roles, host) },
			fmt.Sprintf(block, "app[1-3] (3), names shown as <host>") + "| role=<host>\n"},
		{gatherOptions{Mask: true}, func(host int) string { return fmt.Sprintf(roles, min(host, 2)) },
			fmt.Sprintf(block+roles+block+roles, "app[2-3] (2)", 2, "app1 (1)", 1)},
	} {
		var o, e bytes.Buffer
		tt.opt.Out, tt.opt.Err = &o, &e
		g := newGather(tt.opt)
		for i := 1; i <= 3; i++ {
			name := fmt.Sprint("app", i)
			sent := strings.ReplaceAll(tt.text(i), hostMark, "")
			play(t, g, out(i, name, sent), stderr(i, name, sent), exited(i, name, 0))
		}
		if err := g.End(fleet.Summary{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, o.String()); diff != "" {
			t.Errorf("diff %v, mask %v (-want +got):\n%s", tt.opt.Diff, tt.opt.Mask, diff)
		}
		if diff := cmp.Diff(tt.want, strings.ReplaceAll(e.String(), ", standard error", "")); diff != "" && !tt.opt.Diff {
			t.Errorf("diff %v, mask %v, standard error (-want +got):\n%s", tt.opt.Diff, tt.opt.Mask, diff)
		}
	}
}

// Hosts that sent nothing are seen where others sent something, as a group or as what is missing,
// and so are those that wrote to standard error alone; those whose command did not end are not.
func TestGatherSilent(t *testing.T) {
	const head = rule + "\nweb[1-2] (2)\n" + rule + "\n| ok\n" + rule + "\n"
	for _, tt := range []struct {
		opt  gatherOptions
		want string
	}{
		{gatherOptions{}, head + "web[3-4] (2), no standard output\n" + rule + "\n"},
		{gatherOptions{Diff: true}, head + "web[3-4] (2), against web[1-2]\n" + rule + "\n@@ -1,1 +0,0 @@\n| - ok\n"},
		{gatherOptions{Diff: true, DiffHost: "web3"}, rule + "\nweb[3-4] (2), no standard output\n" + rule + "\n" + head[:len(head)-len(rule)-1]},
		{gatherOptions{ByEnd: true}, rule + "\nweb[1-2] (2), exit 0\n" + rule + "\n| ok\n" +
			rule + "\nweb3 (1), exit 0, no standard output\n" + rule + "\n" + rule + "\nweb4 (1), exit 1, no standard output\n" + rule + "\n"},
	} {
		var o bytes.Buffer
		tt.opt.Out, tt.opt.Err = &o, io.Discard
		g := newGather(tt.opt)
		play(t, g, out(0, "web1", "ok\n"), exited(0, "web1", 0), out(1, "web2", "ok\n"), exited(1, "web2", 0),
			exited(2, "web3", 0), stderr(3, "web4", "oops\n"), exited(3, "web4", 1), refused(4, "web5"))
		if err := g.End(fleet.Summary{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, o.String()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.opt, diff)
		}
	}
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard})
	play(t, g, exited(0, "web1", 0), stderr(1, "web2", "oops\n"), exited(1, "web2", 0))
	if err := g.End(fleet.Summary{}); err != nil || o.Len() > 0 {
		t.Errorf("%v, %q where nobody wrote to standard output", err, &o)
	}
}

// What is wrong with hosts in the same way is said once, whatever they and their addresses are
// called; where something else differs, too, it is said of each.
func TestEndsFold(t *testing.T) {
	lost := func(i int, name, text, hint string) fleet.Result {
		r := refused(i, name)
		r.Err, r.Hint = text, hint
		return r
	}
	changed := func(name, address string, line int, key string) string {
		v := check.Verdict{Kind: check.Changed, Name: name, Remote: address + ":22", New: "ssh-ed25519 SHA256:" + strings.Repeat(key, 43)[:43]}
		v.Lines = []check.Known{{File: "/x/known_hosts", Line: line, Type: "ssh-ed25519", Fingerprint: "SHA256:" + strings.Repeat("x", 43)}}
		return v.What()
	}
	results := []any{
		lost(0, "web1", "connect to host 192.0.2.1 port 22: Connection refused", "see 192.0.2.1"),
		lost(1, "web2", "connect to host 192.0.2.2 port 22: Connection refused", "see 192.0.2.2"),
		lost(2, "web3", "connect to host far.example.com port 22: Connection refused", ""),
		lost(3, "web4", "connect to host 192.0.2.4 port 2222: Connection refused", ""),
		lost(4, "db1", "host key of [::1]:22 (2001:db8::1) for db1.example is unknown", ""),
		lost(5, "db2", "host key of [::2]:22 (2001:db8::2) for db2.example is unknown", ""),
		lost(8, "k1", changed("k1", "192.0.2.8", 7, "A"), "run ssh-keygen -R k1 -f /x/known_hosts"),
		lost(9, "k2", changed("k2", "192.0.2.9", 23, "b+/"), "run ssh-keygen -R k2 -f /x/known_hosts"),
		lost(6, "x", "Could not resolve hostname nosuch: no", ""), lost(7, "y", "Could not resolve hostname none: no", ""),
	}
	var e bytes.Buffer
	g := newGather(gatherOptions{Out: io.Discard, Err: &e})
	play(t, g, results...)
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := `web[1-3] (3) =: unreachable: connect to host <host> port 22: Connection refused
db[1-2] (2) =: unreachable: host key of [<host>]:22 (<host>) for <host>.example is unknown
k[1-2] (2) =: unreachable: host key of <host> (<host>:22) has CHANGED: it offered ssh-ed25519 <fingerprint>, known is /x/known_hosts:<line> (ssh-ed25519 <fingerprint>)
x,y (2) =: unreachable: Could not resolve hostname <host>: no
web4 (1) =: unreachable: connect to host 192.0.2.4 port 2222: Connection refused
hint: run ssh-keygen -R <host> -f /x/known_hosts
hint: see <host>
`
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var lines bytes.Buffer
	p := newPrefix(prefixOptions{Out: io.Discard, Err: &lines})
	play(t, p, results...)
	if n := strings.Count(lines.String(), "hint: "); n != 2 {
		t.Errorf("%d hints as hosts end:\n%s", n, &lines)
	}
}

// A copy to many hosts shows what was copied as they end, and once what went wrong.
func TestCopiesFold(t *testing.T) {
	var o, e bytes.Buffer
	v := View{Files: true, Color: "never", Quiet: true}
	var hosts []host.Host
	for _, name := range []string{"w1", "w2", "w3"} {
		hosts = append(hosts, host.Host{Name: name})
	}
	sink, err := v.Sink(Streams{Out: &o, Err: &e, Getenv: func(string) string { return "" }}, hosts)
	if err != nil {
		t.Fatal(err)
	}
	failed := func(i int) fleet.Result {
		r := exited(i, hosts[i].Name, 1)
		r.Err, r.Hint = "/srv/: there is no such directory", "make it"
		return r
	}
	play(t, sink, out(0, "w1", "1 file copied\n"), exited(0, "w1", 0), stderr(1, "w2", "x: left out\n"), failed(1), stderr(2, "w3", "x: left out\n"), failed(2))
	if o.String() != "w1 -> 1 file copied\n" || e.Len() > 0 {
		t.Errorf("before the end: %q, %q", &o, &e)
	}
	if err := sink.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := rule + "\nw[2-3] (2), standard error\n" + rule + "\n| x: left out\nw[2-3] (2) =: /srv/: there is no such directory\nhint: make it\n"
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A line that is longer than what is held at once stays one line.
func TestGatherLongLine(t *testing.T) {
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard})
	long := strings.Repeat("0123456789", 3*defaultMaxLine/10)
	play(t, g, out(0, "web1", long+"\nnext\n\n"), exited(0, "web1", 0))
	if err := g.End(fleet.Summary{}); err != nil || !strings.HasSuffix(o.String(), rule+"\n| "+long+"\n| next\n| \n") {
		t.Errorf("%v, %d bytes in %d lines", err, o.Len(), strings.Count(o.String(), "\n"))
	}
}

// A single host's own name stays as it was sent.
func TestGatherShowsTheNameWhenNothingWasFolded(t *testing.T) {
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard, Mask: true})
	play(t, g, out(0, "web1", "web1 here\n"), exited(0, "web1", 0))
	if err := g.End(fleet.Summary{}); err != nil || !strings.Contains(o.String(), "\n| web1 here\n") {
		t.Errorf("%v, %q", err, o.String())
	}
}

func TestNamesReplaceWholeWordsOnly(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"web1", "web1 web10 xweb1 my-web1 web1.lan web1", "* web10 xweb1 my-web1 *.lan *"},
		{"web1.lan", "web1.lan web1 web1.lan.", "* * *."},
		{"10.0.0.1", "10.0.0.1 10.0.0.12 10", "* 10.0.0.12 10"},
		{"a.b", "a a.b", "a *"},
	}
	for _, tt := range tests {
		if got := string(namesOf(tt.name).replace(nil, []byte(tt.text), []byte("*"))); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// More output than memory may hold goes to a file and comes back unchanged, and nothing of it stays
// on disk.
func TestGatherSpills(t *testing.T) {
	dir := t.TempDir()
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard})
	g.store.Dir, g.store.Limit = dir, 1<<20
	block := strings.Repeat("0123456789abcdef\n", 1<<12)
	for range 60 { // 4.2 MB each
		play(t, g, out(0, "a1", block), out(1, "a2", block), out(2, "b", "b"+block))
	}
	play(t, g, exited(0, "a1", 0), exited(1, "a2", 0), exited(2, "b", 0))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := "---------------\na[1-2] (2)\n---------------\n" + strings.Repeat("| 0123456789abcdef\n", 60<<12) + "---------------\n"
	if !strings.HasPrefix(o.String(), want) {
		t.Errorf("the first group of %d bytes is not as sent", o.Len())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What finds no room is said, and costs neither the run nor other hosts; outputs that are equal as
// far as they were kept are not taken for equal.
func TestGatherWithoutRoom(t *testing.T) {
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard})
	g.store.Dir, g.store.Limit = filepath.Join(t.TempDir(), "missing"), 1
	block := strings.Repeat("x", 64<<10) + "\n"
	play(t, g, out(0, "a", block), out(1, "b", block), out(2, "c", "short\n"))
	for i, rest := range []string{"A", "BB"} {
		if err := g.Output(out(i, "ab"[i:i+1], rest)); !isLoss(err) {
			t.Errorf("error %v for what is not kept", err)
		}
	}
	play(t, g, exited(0, "a", 0), exited(1, "b", 0), exited(2, "c", 0))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\na (1)\n", "\nb (1)\n", "\n[1 more bytes were not kept: keep output: ", "\n[2 more bytes", "\n| short\n"} {
		if !strings.Contains(o.String(), want) {
			t.Errorf("no %q in\n%s", want, strings.ReplaceAll(o.String(), "x", ""))
		}
	}
}
