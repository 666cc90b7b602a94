package dropin

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

const fakeHosts = "# a comment\nhost1\n  host2  \n\nmachine1\n"

// py runs mpssh.py and returns what it prints and its exit code.
func py(t *testing.T, env Env, args ...string) (stdout string, code int) {
	t.Helper()
	out := env.Stdout.(*bytes.Buffer)
	out.Reset()
	code = Mode("mpssh.py")(t.Context(), env, args)
	if stderr := env.Stderr.(*bytes.Buffer); stderr.Len() > 0 && code == 0 {
		t.Errorf("standard error: %s", stderr)
	}
	return out.String(), code
}

func TestPyOffline(t *testing.T) {
	hosts := writeFile(t, "hosts", fakeHosts, 0o600)
	die := writeFile(t, "die.sh", "#!/bin/sh\necho going; kill -9 $$\n", 0o700)
	noExec := writeFile(t, "noexec", "", 0o600)
	notProgram := writeFile(t, "text", "just text", 0o700)
	header := func(version string) string {
		return "MPSSH.py - Mass parallel SSH in Python (Version " + version + ")\n(c) 2013 Ivan Zahariev <famzah>\n\n" +
			"  [*] read (3) hosts from the list\n  [*] executing \"cmd  arg \" as user \"tuser\"\n"
	}(pyVersion)
	done := func(a, b, c int) string {
		return fmt.Sprintf("\n  Done. 3 hosts processed (ok/non-ok/ssh-failed = %d/%d/%d).\n", a, b, c)
	}
	three := func(text string) string {
		return "host1    " + text + "\nhost2    " + text + "\nmachine1 " + text + "\n"
	}
	echo := "host1    -> -o NumberOfPasswordPrompts=0 tuser@host1 cmd  arg \n" +
		"host2    -> -o NumberOfPasswordPrompts=0 tuser@host2 cmd  arg \n" +
		"machine1 -> -o NumberOfPasswordPrompts=0 tuser@machine1 cmd  arg \n"
	base := []string{"--delay", "0", "-u", "tuser", "-f", hosts}
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"echo", []string{"-S", "/bin/echo"}, header + "  [*] spawning 3 parallel SSH sessions\n\n" + echo + done(3, 0, 0)},
		{"two at once", []string{"-S", "/bin/echo", "-p2"}, header + "  [*] spawning 2 parallel SSH sessions\n\n" + echo + done(3, 0, 0)},
		{"verbose", []string{"--verb", "-S", "/bin/echo", "-O", "o A=it's", "--sshopt=4"}, header +
			"  [*] SSH binary : /bin/echo\n  [*] SSH options: ['-o NumberOfPasswordPrompts=0', \"-o A=it's\", '-4']\n" +
			"  [*] spawning 3 parallel SSH sessions\n\n" +
			strings.ReplaceAll(echo, " tuser@", " -o A=it's -4 tuser@") + done(3, 0, 0)},
		{"directory", []string{"-HS", "/"}, three("=: exec(/) error(13): Permission denied")},
		{"missing", []string{"-HS", "/none"}, three("=: exec(/none) error(2): No such file or directory")},
		{"missing on PATH", []string{"-HS", "no-such-program"}, three("=: exec(no-such-program) error(2): No such file or directory")},
		{"not executable", []string{"-H", "-l99", "-S", noExec}, three("=: exec(" + noExec + ") error(13): Permission denied")},
		{"no program", []string{"-H", "-l99", "-S", notProgram}, three("=: exec(" + notProgram + ") error(8): Exec format error")},
		{"killed", []string{"-S", die}, header + "  [*] spawning 3 parallel SSH sessions\n\n" +
			three("-> going") + three("=: SSH killed with signal 9") + done(0, 0, 3)},
		{"messages are cut, too", []string{"-H", "-l", "20", "-S", "/"}, three("=: exec(/) error(13): P") + three("=: ermission denied")},
	}
	for _, tt := range tests {
		var out, stderr bytes.Buffer
		got, code := py(t, offline(t, &out, &stderr), append(append(base, tt.args...), "cmd  arg ")...)
		if diff := cmp.Diff(sorted(tt.want), sorted(got)); diff != "" || code != 0 {
			t.Errorf("%s: code %d (-want +got):\n%s\n%s", tt.name, code, diff, &stderr)
		}
	}
}

func TestPyArguments(t *testing.T) {
	hosts := writeFile(t, "hosts", fakeHosts, 0o600)
	tests := []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"-V"}, 0, "MPSSH.py 1.2\n", ""},
		{[]string{"-h"}, 0, "usage: mpssh.py [-h] -f FILE", ""},
		{nil, 2, "", "error: the following arguments are required: -f/--file, command\n"},
		{[]string{"cmd"}, 2, "", "error: the following arguments are required: -f/--file\n"},
		{[]string{"-f", hosts, "a", "b"}, 2, "", "error: unrecognized arguments: b\n"},
		{[]string{"-f", hosts, "--nonsense", "a"}, 2, "", "no such option: --nonsense"},
		{[]string{"-f", hosts, "-l", "0", "a"}, 2, "", "at least 1"},
		{[]string{"-f", hosts, "-p", "x", "a"}, 2, "", "invalid"},
		{[]string{"-f", hosts + ".none", "a"}, 1, "", "no such file"},
	}
	for _, tt := range tests {
		var out, stderr bytes.Buffer
		code := Mode("mpssh.py")(t.Context(), offline(t, &out, &stderr), tt.args)
		if code != tt.code || !strings.HasPrefix(out.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", tt.args, code, out.String(), stderr.String())
		}
	}
}

// What ssh says of itself is left out where ssh would not say it.
func TestPyQuiet(t *testing.T) {
	denied, refused := "a@h: Permission denied (publickey).", "ssh: connect to host h port 22: Connection refused"
	all := []string{denied, refused, hostKeyFailed}
	for option, want := range map[string][]string{
		"q": nil, "4q": nil, "o LogLevel=QUIET": nil, "oLogLevel=quiet": nil, `o "LogLevel" QUIET`: nil, "oLogLevel FATAL": {denied, hostKeyFailed},
		"o LogLevel=ERROR": all, "v": all, "o X=QUIET": all,
	} {
		p, err := parsePy([]string{"-f", "hosts", "-O", option, "-O", "oLogLevel=INFO", "true"})
		if err != nil || !slices.Equal(heard(p.dashed(), all), want) {
			t.Errorf("%q: %v, %q", option, err, heard(p.dashed(), all))
		}
	}
}

// What ssh tells of its work, and other things that it does by itself, only ssh can do.
func TestPyAsItIs(t *testing.T) {
	for option, want := range map[string]bool{
		"v": true, "vvv": true, "o LogLevel=VERBOSE": true, "oLogLevel debug2": true, "o LogLevel=INFO": false, "o LogLevel=QUIET": false, "4": false, "q": false,
		"E log": true, "Elog": true, "y": true, "4y": true, "oRequestTTY=force": true, "oRequestTTY no": false, "tt": true,
	} {
		p, err := parsePy([]string{"-f", "hosts", "-O", option, "true"})
		if err != nil || asItIs(p.dashed()) != want {
			t.Errorf("%q: %v, %v", option, err, p)
		}
	}
}

// liveCase is one case of the contract on real servers.
type liveCase struct {
	name string
	args []string
	cmd  string
	only string              // a single host, "" = all nine
	line func(string) string // what one host prints
	done [3]int
	seq  bool // the order counts
}

func flaggedOr(flagged, other string) func(string) string {
	return func(name string) string {
		text := other
		if isFlagged(name) {
			text = flagged
		}
		var b strings.Builder
		for line := range strings.Lines(text) {
			fmt.Fprintf(&b, "%-12s %s", name, line)
		}
		return b.String()
	}
}

func always(text string) func(string) string { return flaggedOr(text, text) }

var liveCases = []liveCase{
	{name: "killed by a limit", cmd: `[ -e mpssh-ok.flag ] && { echo test skipped; exit 0; } ; ulimit -t 1 && while [ 1 ]; do let COUNTER=COUNTER+1; done;`,
		only: "test2.mpssh", line: always("=: SSH exit code 255 (possible SSH failure)\n"), done: [3]int{0, 0, 1}},
	{name: "killed", cmd: `[ -e mpssh-ok.flag ] || kill -9 $$`,
		line: flaggedOr("", "=: SSH exit code 255 (possible SSH failure)\n"), done: [3]int{3, 0, 6}},
	{name: "exit 2", cmd: `[ -e mpssh-ok.flag ] && { exit 0; } ; exit 2`, line: flaggedOr("", "=: SSH exit code 2\n"), done: [3]int{3, 6, 0}},
	{name: "exit 2 and 0 shown", args: []string{"--zeroexit"}, cmd: `[ -e mpssh-ok.flag ] && { exit 0; } ; exit 2`,
		line: flaggedOr("=: SSH exit code 0\n", "=: SSH exit code 2\n"), done: [3]int{3, 6, 0}},
	{name: "stderr and exit 111", cmd: `[ -e mpssh-ok.flag ] && { echo skipping ; exit 0; } ; echo "some err" 1>&2; exit 111`,
		line: flaggedOr("-> skipping\n", "=> some err\n=: SSH exit code 111\n"), done: [3]int{3, 6, 0}},
	{name: "exit not shown", args: []string{"--ignexit"}, cmd: `[ -e mpssh-ok.flag ] && { exit 0; } ; exit 111`,
		line: always(""), done: [3]int{3, 6, 0}},
	{name: "remote 255", args: []string{"-E"}, cmd: `exit 255`, only: "test2.mpssh",
		line: always("=: SSH exit code 255 (possible SSH failure)\n"), done: [3]int{0, 0, 1}},
	{name: "both streams", cmd: `echo -e "some err\nerr v2" 1>&2; echo -e "sout\ngood"; exit 0`,
		line: always("-> sout\n-> good\n=> some err\n=> err v2\n"), done: [3]int{9, 0, 0}},
	{name: "nothing", cmd: `/bin/true    `, line: always(""), done: [3]int{9, 0, 0}},
	{name: "long text", cmd: `printf %0200d 0`, line: always("-> " + strings.Repeat("0", 80) + "\n-> " + strings.Repeat("0", 80) + "\n-> " + strings.Repeat("0", 40) + "\n"), done: [3]int{9, 0, 0}},
	{name: "maxlen 40", args: []string{"-l", "40"}, cmd: `printf %080d 0`, only: "test2.mpssh",
		line: always("-> " + strings.Repeat("0", 40) + "\n-> " + strings.Repeat("0", 40) + "\n"), done: [3]int{1, 0, 0}},
	{name: "maxlen counts bytes", args: []string{"-l", "3"}, cmd: `printf 'a\303\251b'`, only: "test2.mpssh",
		line: always("-> a\u00e9\n-> b\n"), done: [3]int{1, 0, 0}},
	{name: "cut before removal", args: []string{"-l", "3", "-B"}, cmd: `printf '\001\002\003abc'`, only: "test2.mpssh",
		line: always("-> \n-> abc\n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "newlines 1", cmd: `echo -en "\n\nlala\n\n\n"`, only: "test2.mpssh", line: always("-> \n-> \n-> lala\n-> \n-> \n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "newlines 2", cmd: `echo -en "\n\nlala\n"`, only: "test2.mpssh", line: always("-> \n-> \n-> lala\n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "newlines 3", cmd: `echo -en "\n\nlala"`, only: "test2.mpssh", line: always("-> \n-> \n-> lala\n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "newlines 4", cmd: `echo -en "lala"`, only: "test2.mpssh", line: always("-> lala\n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "carriage returns", cmd: `printf 'a\rb\r\nc\r'`, only: "test2.mpssh", line: always("-> a\n-> b\n-> c\n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "removed and told", cmd: `echo -e "test\x01\r\n\x02\x7Fm\x7Fest"`, only: "test2.mpssh",
		line: always("-> test\n-> mest\n=: 4 non-printable characters were ignored\n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "removed silently", args: []string{"-B"}, cmd: `echo -e "test\x01\r\n\x02\x7Fm\x7Fest\t."`, only: "test2.mpssh",
		line: always("-> test\n-> mest\t.\n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "kept", args: []string{"-b"}, cmd: `echo -e "test\x01\r\n\x02\x7Fm\x7Fest\x85"`, only: "test2.mpssh",
		line: always("-> test\x01\n-> \x02\x7fm\x7fest\x85\n"), done: [3]int{1, 0, 0}, seq: true},
	{name: "chunks", cmd: `printf 'a\001'; sleep 2; printf 'b\001\001\n'`, only: "test2.mpssh",
		line: always("-> a\n=: 1 non-printable characters were ignored\n-> b\n=: 2 non-printable characters were ignored\n"), done: [3]int{1, 0, 0}, seq: true},
}

func TestPyOnRealServers(t *testing.T) {
	t.Parallel() // it waits for sshd most of the time
	l := startLab(t)
	for engine, make := range l.engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for _, tt := range liveCases {
				names := labNames
				if tt.only != "" {
					names = []string{tt.only}
				}
				var out, stderr bytes.Buffer
				env := offline(t, &out, &stderr)
				env.Engine = make
				hosts := writeFile(t, "hosts", strings.Join(names, "\n"), 0o600)
				got, code := py(t, env, append(append([]string{"-u", l.user, "-f", hosts}, tt.args...), tt.cmd)...)
				want := fmt.Sprintf("MPSSH.py - Mass parallel SSH in Python (Version 1.2)\n(c) 2013 Ivan Zahariev <famzah>\n\n"+
					"  [*] read (%d) hosts from the list\n  [*] executing \"%s\" as user \"%s\"\n  [*] spawning %d parallel SSH sessions\n\n",
					len(names), tt.cmd, l.user, len(names))
				for _, name := range names {
					line := tt.line(name)
					if tt.only != "" {
						line = strings.ReplaceAll(line, "test2.mpssh  ", "test2.mpssh ")
					}
					want += line
				}
				want += fmt.Sprintf("\n  Done. %d hosts processed (ok/non-ok/ssh-failed = %d/%d/%d).\n", len(names), tt.done[0], tt.done[1], tt.done[2])
				if !tt.seq {
					want, got = sorted(want), sorted(got)
				}
				if diff := cmp.Diff(want, got); diff != "" || code != 0 {
					t.Errorf("%s: code %d (-want +got):\n%s\n%s", tt.name, code, diff, &stderr)
				}
			}
		})
	}
}

// What ssh would say about connections and logins is said, and counts as ssh-failed; 255 is shown
// even with -E.
func TestPyFailures(t *testing.T) {
	l := startLab(t)
	for engine, make := range l.engines() {
		var out, stderr bytes.Buffer
		env := offline(t, &out, &stderr)
		env.Engine = make
		hosts := writeFile(t, "hosts", "127.0.0.9\ntest1.mpssh\n-oProxyCommand=id\na;id\ntimeout.mpssh\n", 0o600)
		got, code := py(t, env, "-E", "-H", "-u", "nobody", "-l", "999", "-f", hosts, "-O", "o ConnectTimeout=1", "-O", "o BatchMode=yes", "true")
		if code != 0 {
			t.Errorf("%s: code %d: %s", engine, code, &stderr)
		}
		for _, want := range []string{
			"127.0.0.9         => ssh: connect to host 127.0.0.9 port 22: Connection refused\n",
			"127.0.0.9         =: SSH exit code 255 (possible SSH failure)\n",
			"test1.mpssh       => nobody@127.0.0.1: Permission denied (publickey).\n",
			"test1.mpssh       =: SSH exit code 255 (possible SSH failure)\n",
			"-oProxyCommand=id =: SSH exit code 255 (possible SSH failure)\n",
			"a;id              =: SSH exit code 255 (possible SSH failure)\n",
			fmt.Sprintf("timeout.mpssh     => ssh: connect to host 127.0.0.1 port %d: Connection timed out\n", l.silent),
			"timeout.mpssh     =: SSH exit code 255 (possible SSH failure)\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no line %q in\n%s", engine, want, got)
			}
		}
		if n := strings.Count(got, "\n"); n != 10 {
			t.Errorf("%s: %d lines, want 10:\n%s", engine, n, got)
		}
	}
}

// On a terminal there are colors, and nothing that a terminal would obey.
func TestPyOnATerminal(t *testing.T) {
	var out, stderr bytes.Buffer
	env := offline(t, &out, &stderr)
	env.StdoutTTY = true
	p := &pySSH{MaxLen: 80, ZeroExit: true, Silent: true}
	s := newPySink(p, env, []string{"web1"})
	if err := s.Output(fleet.Event{Data: []byte("a\x1b[2J\u009bb\u202e\n")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Done(fleet.Result{Host: host.Host{Name: "web1"}, Phase: fleet.PhaseExit, Attempts: 1, Outcome: fleet.Outcome{Ran: fleet.RanYes}}, fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := "web1 \x1b[1;32m->\x1b[0;39m a[2J\\u009bb\\u202e\nweb1 \x1b[1;32m=:\x1b[0;39m SSH exit code 0\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Endless output is printed as it comes and does not pile up; what is cut where does not depend on
// it.
func TestPyEndlessOutput(t *testing.T) {
	var out, stderr bytes.Buffer
	s := newPySink(&pySSH{MaxLen: 100}, offline(t, &out, &stderr), []string{"a"})
	block := strings.Repeat("x", 1000)
	for range 1000 {
		if err := s.Output(fleet.Event{Data: []byte(block)}); err != nil {
			t.Fatal(err)
		}
		if n := cap(s.live[0][0].data); n > 4*pyChunk {
			t.Fatalf("%d bytes held", n)
		}
	}
	if err := s.Output(fleet.Event{Data: []byte("\nend")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Done(fleet.Result{Host: host.Host{Name: "a"}, Attempts: 1, Outcome: fleet.Outcome{Ran: fleet.RanYes}}, fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("a -> "+strings.Repeat("x", 100)+"\n", 10_000) + "a -> end\n"
	if out.String() != want {
		t.Errorf("%d bytes printed, want %d", out.Len(), len(want))
	}
}

// However large a chunk is and in whatever pieces it comes, it is printed as if it had come at
// once.
func TestPyChunksAreIndependentOfPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 20 {
		var data []byte
		for len(data) < 3*pyChunk {
			data = append(data, []string{"x", "longer words ", "\n", "\r", "\r\n", "\x01"}[r.IntN(6)]...)
		}
		maxLen := 1 + r.IntN(60)
		var want strings.Builder
		bad := 0
		for _, line := range splitLines(data) {
			for _, piece := range cutBytes(line, maxLen) {
				kept := bytes.ReplaceAll(piece, []byte{1}, nil)
				bad += len(piece) - len(kept)
				fmt.Fprintf(&want, "a -> %s\n", kept)
			}
		}
		fmt.Fprintf(&want, "a =: %d non-printable characters were ignored\n", bad)
		var out, stderr bytes.Buffer
		s := newPySink(&pySSH{MaxLen: maxLen}, offline(t, &out, &stderr), []string{"a"})
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(40_000))
			if err := s.Output(fleet.Event{Data: rest[:n]}); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.Done(fleet.Result{Host: host.Host{Name: "a"}, Attempts: 1, Outcome: fleet.Outcome{Ran: fleet.RanYes}}, fleet.Summary{}); err != nil {
			t.Fatal(err)
		}
		// The message is cut as lines are, so it is compared without its cuts.
		got, message, _ := strings.Cut(out.String(), "a =: ")
		wantText, wantMessage, _ := strings.Cut(want.String(), "a =: ")
		if got != wantText || strings.ReplaceAll(message, "\na =: ", "") != wantMessage {
			t.Fatalf("cut at %d: %d bytes printed, want %d; %q", maxLen, len(got), len(wantText), message)
		}
	}
}

func TestPyInterrupted(t *testing.T) {
	slow := writeFile(t, "slow.sh", "#!/bin/sh\nexec sleep 60\n", 0o700)
	hosts := writeFile(t, "hosts", "a\nb\n", 0o600)
	var out, stderr bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	start := time.Now()
	code := Mode("mpssh.py")(ctx, offline(t, &out, &stderr), []string{"-f", hosts, "-S", slow, "x"})
	if code != 1 || !strings.Contains(stderr.String(), "Terminated by CTRL+C") || time.Since(start) > 30*time.Second {
		t.Errorf("code %d after %v, stderr %q", code, time.Since(start), &stderr)
	}
}

func TestPyDelayIsKept(t *testing.T) {
	hosts := writeFile(t, "hosts", "a\nb\nc\nd\n", 0o600)
	var out, stderr bytes.Buffer
	start := time.Now()
	if code := Mode("mpssh.py")(t.Context(), offline(t, &out, &stderr), []string{"-d", "100", "-f", hosts, "-S", "/bin/echo", "x"}); code != 0 {
		t.Errorf("code %d: %s", code, &stderr)
	}
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("four hosts 100 ms apart took %v", took)
	}
}

func TestPyClosedOutput(t *testing.T) {
	hosts := writeFile(t, "hosts", "a\nb\n", 0o600)
	var out, stderr bytes.Buffer
	env := offline(t, &out, &stderr)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	env.Stdout = w
	if code := Mode("mpssh.py")(t.Context(), env, []string{"-f", hosts, "-S", "/bin/echo", "x"}); code != 1 || stderr.Len() > 0 {
		t.Errorf("code %d, stderr %q", code, &stderr)
	}
}

func TestPythonList(t *testing.T) {
	got := pythonList([]string{"a", `it's`, `say "x"`, `it's "x"`, `a\b`, "t\tn\nc\x01", "\xff", "é"})
	want := `['a', "it's", 'say "x"', 'it\'s "x"', 'a\\b', 't\tn\nc\x01', '\udcff', 'é']`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
