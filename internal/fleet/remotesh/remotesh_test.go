package remotesh_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sshpace/internal/fleet/remotesh"
	"sshpace/internal/ssh/sshtest"
)

// eater reads its input, which must not be its own text.
const eater = "#!/bin/bash\ncat\nprintf 'step2\\n'\nprintf '%s\\0' \"$@\"\nexit 7\n"

// awkward are words that some shell or other makes something else of.
var awkward = []string{"", "a b", "it's", `\'; echo INJECTED; #`, "=ls", "!x", "!!", "a\nb", "$HOME", "`id`", "~root", "*", "-n", "--", `\`, `\\`,
	"{a,b}", "a;b", "%1", "@", "^x", "(id)", "ü\xff", "\x01\x81\x88", "#", "\t", "\r"}

// words is any list of arguments.
func words(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(awkward), rapid.Custom(func(t *rapid.T) string {
		b := rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 40).Draw(t, "bytes")
		return string(b)
	})), 0, 30).Draw(t, "words")
}

// program is the command line for a script, and the input that it needs, with what the script
// itself is to read.
func program(t testing.TB, script, stdin string, args ...string) (line string, input []byte) {
	t.Helper()
	text, err := remotesh.Script([]byte(script), args)
	if err != nil {
		t.Fatal(err)
	}
	line, input = remotesh.Command(text)
	return line, append(input, stdin...)
}

// said is what the eater prints of its input and arguments.
func said(stdin string, args []string) string {
	if len(args) == 0 {
		args = []string{""} // printf runs once in any case
	}
	return stdin + "step2\n" + strings.Join(args, "\x00") + "\x00"
}

// run runs a command with input, and returns what it printed and how it ended.
func run(t testing.TB, cmd *exec.Cmd, input []byte) (out string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Logf("%s: %s", cmd.Args[0], &stderr)
	}
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// shells are paths of login shells; busybox is one under the name of its applet.
func shells(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "shells") // nobody must reach it: t.TempDir is 0700
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, "ash")}
	for _, name := range []string{"busybox", "dash", "bash", "zsh", "fish", "tcsh", "csh", "ksh93", "mksh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("these tests need %s: ./test installs it", name)
		}
		if name != "busybox" {
			paths = append(paths, path)
		} else if err := os.Symlink(path, paths[0]); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// A server starts shell -c LINE (sshd(8)); whatever the shell, the script's words come through and
// its input is its own.
func TestWordsThroughEveryShell(t *testing.T) {
	for _, shell := range shells(t) {
		t.Run(filepath.Base(shell), rapid.MakeCheck(func(t *rapid.T) {
			args := words(t)
			text, err := remotesh.Script([]byte(eater), args)
			if err != nil {
				t.Fatal(err)
			}
			line, input := remotesh.Command(text)
			cmd := exec.Command(shell, "-c", line)
			cmd.Stdin = bytes.NewReader(append(input, "my input\n"...))
			out, _ := cmd.Output()
			if got, want := string(out), said("my input\n", args); got != want || cmd.ProcessState.ExitCode() != 7 {
				t.Fatalf("exit %d, %q, want %q", cmd.ProcessState.ExitCode(), got, want)
			}
		}))
	}
}

// The same with the real programs: ssh, sshd and an account with that shell.
func TestLoginShells(t *testing.T) {
	big := "#!/bin/sh\n" + strings.Repeat("# "+strings.Repeat("x", 77)+"\n", 1<<20/80) + "cat\necho end\nexit 3\n"
	for _, shell := range shells(t) {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			t.Parallel()
			d := sshtest.StartSshdWithShell(t, shell)
			over := func(script, stdin string, args ...string) (string, int) {
				line, input := program(t, script, stdin, args...)
				return run(t, ssh(d, line), input)
			}
			if got, code := over(eater, "", awkward...); got != said("", awkward) || code != 7 {
				t.Errorf("exit %d, %q, want %q", code, got, said("", awkward))
			}
			if got, code := over(big, "my input\n"); got != "my input\nend\n" || code != 3 {
				t.Errorf("1 MB: exit %d, %.200q", code, got)
			}
		})
	}
}

// ssh is the installed client on its way to d.
func ssh(d *sshtest.Sshd, line string) *exec.Cmd {
	return exec.Command("ssh", "-F", "none", "-i", d.Key, "-p", fmt.Sprint(d.Port), "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
		"-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "GlobalKnownHostsFile=none",
		d.User+"@127.0.0.1", line)
}

// local runs a script as a host would.
func local(t *testing.T, script, stdin string, args ...string) (string, int) {
	t.Helper()
	line, input := program(t, script, stdin, args...)
	return run(t, exec.Command("sh", "-c", line), input)
}

// A first line means what it means to the kernel.
func TestInterpreters(t *testing.T) {
	for _, tt := range []struct {
		script, want string
		code         int
	}{
		{"read x; echo \"$x $1 $#\"; exit 4\n", "data arg 1\n", 4},
		{"#!\nread x; echo \"$x $1\"\n", "data arg\n", 0},
		{"#!/bin/sh -e\nfalse\necho on\n", "", 1},
		{"#! /bin/bash\t-eu \nread x; echo $x ${BASH_VERSION:+bash} $-\n", "data bash ehuB\n", 0},
		{"#!/usr/bin/env bash\necho ${BASH_VERSION:+bash}\n", "bash\n", 0},
		{"#!/usr/bin/env -S bash -e\nfalse\necho on\n", "", 1},
		{"#!/usr/bin/awk -f\n{ print \"got \" $0; exit 5 }\n", "", 2}, // the argument is a file that is not there
		{"#!/bin/sed -nf\ns/d/D/w /dev/stdout\n", "", 2},
		{"#!/usr/bin/perl -w\nprint <STDIN>, \"@ARGV\", <DATA>;\nexit 9;\n__DATA__\n more", "data\narg more", 9},
		{"#!/usr/bin/env python3\nimport sys\nprint(sys.stdin.read(), sys.argv[1:])\n", "data\n ['arg']\n", 0},
		{"#!/bin/tcsh -f\nset x = $<\necho $x $1\nexit 3\n", "data arg\n", 3},
		{"#!/usr/bin/fish\nread x\necho $x $argv\n", "data arg\n", 0},
		{"#!/bin/zsh\nread x\necho $x $1\n", "data arg\n", 0},
		{"#!/bin/ksh93\nread x\necho $x $1\n", "data arg\n", 0},
		{"#!/no/such/interpreter\n", "", 127},
		{"echo no line end", "no line end\n", 0},
	} {
		if got, code := local(t, tt.script, "data\n", "arg"); got != tt.want || code != tt.code {
			t.Errorf("%q: exit %d, %q; want %d, %q", tt.script, code, got, tt.code, tt.want)
		}
	}
	if got, code := local(t, "#!/usr/bin/awk -f\n{ print \"got \" $0; exit 5 }\n", "data\n"); got != "got data\n" || code != 5 {
		t.Errorf("awk: exit %d, %q", code, got)
	}
	for _, script := range []string{"#!/bin/sh\r\necho\r\n", "#!/bin/sh\nexit\n\x00"} {
		if _, err := remotesh.Script([]byte(script), nil); err == nil {
			t.Errorf("%q is taken", script)
		}
	}
}

// A program whose end does not arrive does nothing at all.
func TestCutOff(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	line, input := program(t, "#!/bin/sh\n>"+mark+"\n", "")
	for cut := range len(input) {
		if _, code := run(t, exec.Command("sh", "-c", line), input[:cut]); code == 0 {
			t.Errorf("exit 0 with %d of %d bytes", cut, len(input))
		}
		if _, err := os.Stat(mark); err == nil {
			t.Fatalf("it ran with %d of %d bytes", cut, len(input))
		}
	}
	if _, code := run(t, exec.Command("sh", "-c", line), input); code != 0 {
		t.Errorf("exit %d with all of them", code)
	}
}

// A dd that cannot fill a block from a pipe reads byte by byte.
func TestOldDD(t *testing.T) {
	dd, err := exec.LookPath("dd")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	old := "#!/bin/sh\ncase $* in *iflag*) exit 1 ;; esac\nexec " + dd + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "dd"), []byte(old), 0o700); err != nil {
		t.Fatal(err)
	}
	line, input := program(t, eater, "my input\n", "a", "b c")
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if got, code := run(t, cmd, input); got != said("my input\n", []string{"a", "b c"}) || code != 7 {
		t.Errorf("exit %d, %q", code, got)
	}
}

// A script that ends early and leaves a process behind is over all the same, although most of its
// text was never read.
func TestEndsEarly(t *testing.T) {
	script := "#!/bin/sh\nsleep 600 >/dev/null 2>&1 </dev/null & echo $!\nexit 5\n" + strings.Repeat("# more\n", 100000)
	start := time.Now()
	pid, code := local(t, script, "")
	if code != 5 || time.Since(start) > time.Minute {
		t.Errorf("exit %d after %v", code, time.Since(start))
	}
	run(t, exec.Command("kill", strings.TrimSpace(pid)), nil)
}

// TestReaders: where a start-up file has read some of what is sent, nothing of the rest is run: it
// would be what the program was to read.
func TestReaders(t *testing.T) {
	for _, before := range []string{"read line", "read line; read more", "head -c 3 >/dev/null", "dd bs=1 count=40 >/dev/null 2>&1", "exec sh", "exec bash"} {
		dir := t.TempDir()
		line, input := remotesh.Command("head -c 1 >/dev/null") // and leaves the rest
		for _, data := range []string{"\n", "{ ", "}\n"} {
			for range 20 {
				data += "\n>ran\n{ >ran; }"
			}
			cmd := exec.Command("sh", "-c", before+"; "+line)
			cmd.Dir = dir
			out, code := run(t, cmd, append(input, data...))
			if !strings.HasPrefix(before, "exec") && (code != 126 || out != "") {
				t.Errorf("%s: exit %d, %q", before, code, out)
			}
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: data were run", before)
		}
	}
}

// A script with a byte-order mark is refused: sh would run what was written for another
// interpreter.
func TestByteOrderMark(t *testing.T) {
	if _, err := remotesh.Script([]byte("\ufeff#!/usr/bin/env python3\nimport os\n"), nil); !errors.Is(err, remotesh.ErrByteOrderMark) {
		t.Error(err)
	}
}
