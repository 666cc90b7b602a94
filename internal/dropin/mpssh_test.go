package dropin

import (
	"bytes"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

const mpsshHosts = `# comment
everywhere
%web
root@web1:2222
web2   trailing words
web2
%db
admin@db1
@nobody
-oProxyCommand=id
web2
`

func TestMpsshHosts(t *testing.T) {
	tests := []struct{ label, want string }{
		{"", "me@everywhere root@web1:2222 me@web2 me@web2 admin@db1 me@web2"},
		{"web", "me@everywhere root@web1:2222 me@web2 me@web2"},
		{"db", "me@everywhere admin@db1 me@web2"},
		{"none", "me@everywhere"},
	}
	for _, tt := range tests {
		var warn bytes.Buffer
		m := &mpssh{User: "me", Label: tt.label}
		hosts, err := m.parseHosts(strings.NewReader(mpsshHosts), "hosts", &warn)
		var got []string
		for _, h := range hosts {
			got = append(got, h.String())
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("label %q: %q, %v; want %q", tt.label, got, err, tt.want)
		}
		if warned := strings.Contains(warn.String(), "hosts:10: "); warned != (tt.label == "" || tt.label == "db") {
			t.Errorf("label %q: warnings %q", tt.label, &warn)
		}
	}
}

func TestMpsshArguments(t *testing.T) {
	script := writeFile(t, "s.sh", "#!/bin/sh\n", 0o600)
	tests := []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"-V"}, 0, "mpssh-1.4-dev\n", ""},
		{[]string{"-h"}, 0, "\nusage: mpssh [option]", ""},
		{nil, 0, "\n   *** command missing, use -h for help\n\n", ""},
		{[]string{"a", "b"}, 0, "\n   *** too many arguments\n\n", ""},
		{[]string{"-u", "me", "-u", "you", "a"}, 0, "\n   *** one username allowed\n\n", ""},
		{[]string{"-o", "x", "--outdir=y", "a"}, 0, "\n   *** one output dir allowed\n\n", ""},
		{[]string{"-d", "-2", "a"}, 0, "\n   *** delay can't be negative\n\n", ""},
		{[]string{"-d", "-1", "a"}, 0, "\n   *** delay can't be negative\n\n", ""},
		{[]string{"-p", "-1", "a"}, 0, "\n   *** bad numproc\n\n", ""},
		{[]string{"-r", script, "a"}, 0, "\n   *** can't use remote command when executing local script\n\n", ""},
		{[]string{"-r", script}, 0, "\n   *** script file is not executable\n\n", ""},
		{[]string{"-r", script + ".none"}, 0, "\n   *** can't stat script file\n\n", ""},
		{[]string{"-f", script + ".none", "a"}, 1, "", "no such file"},
		{[]string{"-f", script, "a"}, 1, "", "host list file empty, does not exist or no valid entries"},
		{[]string{"a"}, 1, "", ".mpssh/hosts: no such file"},
	}
	for _, tt := range tests {
		var out, stderr bytes.Buffer
		code := Mode("mpssh")(t.Context(), offline(t, &out, &stderr), tt.args)
		if code != tt.code || !strings.HasPrefix(out.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%q: code %d, stdout %q, stderr %q", tt.args, code, &out, &stderr)
		}
	}
}

func TestMpsshOnRealServers(t *testing.T) {
	t.Parallel() // it waits for sshd most of the time
	l := startLab(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	script := writeFile(t, "job's.sh", "#!/bin/sh\necho script in $(basename \"$PWD\")\nexit 7\n", 0o700)
	for engine, makeEngine := range l.engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "out")
			tests := []struct {
				name   string
				args   []string
				stdin  string
				stdout string
				stderr string
				code   int
			}{
				{name: "streams", args: []string{"-f", "-", `echo one; echo; echo two >&2; printf part`}, stdin: "test1.mpssh\n# c\ntest50.mpssh\n",
					stdout: " test1.mpssh -> one\n test1.mpssh -> part\ntest50.mpssh -> one\ntest50.mpssh -> part\n",
					stderr: " test1.mpssh => two\ntest50.mpssh => two\n"},
				{name: "exit codes", args: []string{"-e", "-f", "-", `[ -e mpssh-ok.flag ] || exit 3`}, stdin: "test1.mpssh\ntest2.mpssh\n",
					stdout: "test1.mpssh =: 0\ntest2.mpssh =: 3\n"},
				{name: "killed", args: []string{"-e", "-f", "-", `kill -9 $$`}, stdin: "test1.mpssh\n", stdout: "test1.mpssh !!! ssh failure\n"},
				{name: "label and login names", args: []string{"-v", "-l", "b", "-f", "-", "echo x"}, stdin: "%a\ntest1.mpssh\n%b\n" + l.user + "@test50.mpssh\ntest2.mpssh\n",
					stdout: "Reading hosts from : stdin\n" + l.user + "@test50.mpssh -> x\n" + l.user + "@ test2.mpssh -> x\n"},
				{name: "no stderr", args: []string{"-E", "-f", "-", "echo x; echo y >&2"}, stdin: "test1.mpssh\n", stdout: "test1.mpssh -> x\n"},
				{name: "no stdout", args: []string{"--no-o", "-f", "-", "echo x; echo y >&2"}, stdin: "test1.mpssh\n", stderr: "test1.mpssh => y\n"},
				{name: "login refused", args: []string{"-e", "-u", "nobody", "-f", "-", "true"}, stdin: "test1.mpssh\n",
					stdout: "test1.mpssh !!! ssh failure\n", stderr: "test1.mpssh => nobody@127.0.0.1: Permission denied (publickey).\n"},
				{name: "quietly", args: []string{"-q", "-u", "nobody", "-f", "-", "true"}, stdin: "test1.mpssh\n", stdout: "test1.mpssh !!! ssh failure\n"},
				{name: "without output", args: []string{"-O", "-E", "-e", "-f", "-", "echo x; exit 3"}, stdin: "test1.mpssh\n"},
				{name: "twice", args: []string{"-f", "-", "echo x"}, stdin: "test1.mpssh\ntest1.mpssh\n", stdout: "test1.mpssh -> x\ntest1.mpssh -> x\n"},
				{name: "progress bar", args: []string{"-f", "-", `printf "1%%\r2%%\n"`}, stdin: "test1.mpssh\n", stdout: "test1.mpssh -> 1%\r2%\n"},
				{name: "null bytes", args: []string{"-f", "-", `printf "a\0b\n"`}, stdin: "test1.mpssh\n", stdout: "test1.mpssh -> ab\n"},
				{name: "silent, login names", args: []string{"-v", "-f", "-", "true"}, stdin: "test1.mpssh\n", stdout: "Reading hosts from : stdin\n" + l.user + "@test1.mpssh \n"},
				{name: "silent but for what is left out", args: []string{"-v", "-E", "-f", "-", "echo x >&2"}, stdin: "test1.mpssh\n", stdout: "Reading hosts from : stdin\n" + l.user + "@test1.mpssh \n"},
				{name: "script", args: []string{"-e", "-r", script, "-f", "-"}, stdin: "test1.mpssh\ntest2.mpssh\n",
					stdout: "test1.mpssh -> script in " + filepath.Base(filepath.Dir(l.conf)) + "\ntest1.mpssh =: 7\ntest2.mpssh -> script in " + filepath.Base(me.HomeDir) + "\ntest2.mpssh =: 7\n"},
				{name: "files, blind", args: []string{"-b", "-o", dir, "-f", "-", `[ -e mpssh-ok.flag ] && echo good || { echo bad >&2; }`},
					stdin: "test1.mpssh\ntest2.mpssh\n"},
				{name: "files, login refused", args: []string{"-b", "-o", dir, "-u", "nobody", "-f", "-", "true"}, stdin: "test1.mpssh\n", stdout: "test1.mpssh !!! ssh failure\n"},
				{name: "files, no end", args: []string{"-b", "-o", dir, "-f", "-", "printf part; printf x >&2"}, stdin: "test3.mpssh\ntest3.mpssh\n"},
				{name: "files, left out", args: []string{"-E", "-O", "-o", dir, "-f", "-", "echo x; echo y >&2"}, stdin: "test50.mpssh\n"},
				{name: "one after the other", args: []string{"-p1", "-d", "1", "-f", "-", "echo x"}, stdin: "test1.mpssh\ntest2.mpssh\n",
					stdout: "test1.mpssh -> x\ntest2.mpssh -> x\n"},
			}
			for _, tt := range tests {
				var out, stderr bytes.Buffer
				env := offline(t, &out, &stderr)
				env.Engine, env.User, env.Stdin = makeEngine, l.user, strings.NewReader(tt.stdin)
				code := Mode("mpssh")(t.Context(), env, tt.args)
				if diff := cmp.Diff(sorted(tt.stdout), sorted(out.String())); diff != "" || code != tt.code {
					t.Errorf("%s: code %d, stdout (-want +got):\n%s", tt.name, code, diff)
				}
				if diff := cmp.Diff(sorted(tt.stderr), sorted(stderr.String())); diff != "" {
					t.Errorf("%s: stderr (-want +got):\n%s", tt.name, diff)
				}
			}
			checkMpsshFiles(t, dir, map[string]string{l.user + "@test1.mpssh.out": "good\n", l.user + "@test2.mpssh.err": "bad\n",
				l.user + "@test3.mpssh.out": "part\npart\n", l.user + "@test3.mpssh.err": "x\nx\n",
				"nobody@test1.mpssh.err": "nobody@127.0.0.1: Permission denied (publickey).\n"})
		})
	}
}

func checkMpsshFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The script runs under its own name from a private directory, which is gone afterwards.
func TestMpsshScriptLeavesNothing(t *testing.T) {
	l := startLab(t)
	script := writeFile(t, "where", "#!/bin/sh\necho \"$0\"\nls -ld \"${0%/*}\" | cut -c1-10\n", 0o700)
	var out, stderr bytes.Buffer
	env := offline(t, &out, &stderr)
	env.Engine, env.User, env.Stdin = l.engines()["openssh"], l.user, strings.NewReader("test2.mpssh\n")
	code := Mode("mpssh")(t.Context(), env, []string{"-r", script, "-f", "-"})
	first, rest, _ := strings.Cut(out.String(), "\n")
	path := strings.TrimPrefix(first, "test2.mpssh -> ")
	if code != 0 || filepath.Base(path) != "where" || rest != "test2.mpssh -> drwx------\n" {
		t.Fatalf("code %d, %q, %s", code, &out, &stderr)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", filepath.Dir(path), err)
	}
}

// Unknown keys are never trusted silently: by default they stop the host, with -s they are
// recorded, and a changed key stops the host even so.
func TestMpsshHostKeys(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{nil, "-oStrictHostKeyChecking=yes"},
		{[]string{"-i", "/key file"}, "-oStrictHostKeyChecking=yes"},
		{[]string{"-s"}, "-oStrictHostKeyChecking=accept-new"},
	}
	for _, tt := range tests {
		m, err := parseMpssh(append(tt.args, "true"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"-oNumberOfPasswordPrompts=0", tt.want, "-oConnectTimeout=30"}
		if m.Identity != "" {
			want = append(want, "-i/key file")
		}
		if diff := cmp.Diff(want, m.sshArgs()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestMpsshOnATerminal(t *testing.T) {
	var out, stderr bytes.Buffer
	env := offline(t, &out, &stderr)
	env.StdoutTTY, env.StderrTTY = true, true
	m := &mpssh{User: "me", Command: "uptime", Procs: 100, Label: "web", NoKeyCheck: true, PrintExit: true}
	hosts := []host.Host{{User: "me", Name: "a"}, {User: "me", Name: "long"}}
	if err := m.header(env, 2); err != nil {
		t.Fatal(err)
	}
	s, err := m.sink(env, hosts)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		s.Output(fleet.Event{Data: []byte("x\x1b[2J\rlong -> forged\n")}),
		s.Output(fleet.Event{Stream: fleet.Stderr, Data: []byte("\u009b\n")}),
		s.Done(fleet.Result{Host: hosts[0], Attempts: 1, Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: 1}}, fleet.Summary{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantOut := `MPSSH - Mass Parallel Ssh Ver.1.4-dev
(a mode of sshpace)

  [*] read (2) hosts from the list
  [*] executing "uptime" as user "me"
  [*] only on hosts labeled "web"
  [*] unknown host keys are accepted
  [*] spawning 2 parallel ssh sessions

` + "   a \x1b[1;32m->\x1b[0;39m x\\x0dlong -> forged\n   a \x1b[1;31m=:\x1b[0;39m 1\n"
	if diff := cmp.Diff(wantOut, out.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if want := "   a \x1b[1;31m=>\x1b[0;39m \\u009b\n"; stderr.String() != want {
		t.Errorf("stderr %q, want %q", &stderr, want)
	}
}
