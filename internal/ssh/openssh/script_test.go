package openssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wrapped is a script in a directory of its own, which starts a copy of ssh beside it and counts.
type wrapped struct{ dir, script, target string }

func (w wrapped) starts() int {
	text, _ := os.ReadFile(filepath.Join(w.dir, "count"))
	return strings.Count(string(text), "\n")
}

func wrap(t *testing.T, script string) wrapped {
	t.Helper()
	dir := t.TempDir()
	w := wrapped{dir, filepath.Join(dir, "ssh"), filepath.Join(dir, "real", "ssh")}
	text, err := os.ReadFile("/usr/bin/ssh")
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"real", "early"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put(t, w.target, string(text))
	put(t, filepath.Join(dir, "settings"), "SETTING=1\n")
	put(t, w.script, strings.ReplaceAll(script, "DIR", dir))
	return w
}

// A script is asked once, until anything changes that decides what it starts.
func TestScriptIsAskedOnce(t *testing.T) {
	cacheIn(t)
	const count = "echo \"$*\" >>DIR/count # it's one\n"
	replace := func(t *testing.T, path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		put(t, path+".new", string(text))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	script := func(t *testing.T, w wrapped) { replace(t, w.script) }
	target := func(t *testing.T, w wrapped) { replace(t, w.target) }
	settings := func(t *testing.T, w wrapped) { put(t, filepath.Join(w.dir, "settings"), "SETTING=2\n") }
	earlier := func(t *testing.T, w wrapped) {
		if err := os.Symlink("/usr/bin/ssh", filepath.Join(w.dir, "early", "ssh")); err != nil {
			t.Fatal(err)
		}
	}
	setting := func(t *testing.T, _ wrapped) { t.Setenv("SSHPACE_TEST_SETTING", "other") }
	search := func(t *testing.T, _ wrapped) { t.Setenv("PATH", os.Getenv("PATH")+":/nowhere") }
	type change = func(*testing.T, wrapped)
	type row struct {
		wrapped
		change
	}
	rows := map[string]row{}
	for name, r := range map[string]struct {
		script  string
		changes map[string]change
	}{
		"path":     {"#!/bin/sh\n" + count + "exec DIR/real/ssh \"$@\"\n", map[string]change{"script": script, "target": target}},
		"variable": {"#!/bin/bash\n" + count + "exec ${SSHPACE_TEST_SETTING:-DIR/real/ssh} \"$@\"", map[string]change{"target": target, "variable": func(t *testing.T, w wrapped) { t.Setenv("SSHPACE_TEST_SETTING", "/usr/bin/ssh") }}},
		"logs":     {"#!/bin/sh\nset -e; printf '%s $HOME\\n' \"$SSHPACE_TEST_SETTING: $*\" 2>&1 | cat >> DIR/count\nDIR/real/ssh \"$@\"", map[string]change{"target": target, "variable": setting}},
		"PATH":     {"#!/usr/bin/env bash\n" + count + "export PATH=DIR/early:DIR/real:$PATH A='b c'\ncommand ssh \\\n  \"$@\"\n", map[string]change{"target": target, "earlier": earlier, "PATH": search}},
		"beside":   {"#!/bin/dash\n" + count + ". DIR/settings\nREAL=\"${0}.real\"; exec \"$REAL\" \"$@\"", map[string]change{"settings": settings, "target": target}},
	} {
		for what, change := range r.changes {
			w := wrap(t, r.script)
			if err := os.Symlink(w.target, w.script+".real"); err != nil {
				t.Fatal(err)
			}
			rows[name+", "+what] = row{w, change}
		}
	}
	time.Sleep(settled + 100*time.Millisecond)
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			for _, want := range []int{1, 1} {
				if _, err := find(t.Context(), "ssh", r.script); err != nil {
					t.Fatal(err)
				}
				if n := r.starts(); n != want {
					t.Fatalf("%d starts, want %d", n, want)
				}
			}
			r.change(t, r.wrapped)
			if _, err := find(t.Context(), "ssh", r.script); err != nil {
				t.Fatal(err)
			}
			if n := r.starts(); n != 2 {
				t.Errorf("%d starts after the change, want 2", n)
			}
		})
	}
}

// A script that has just been written is asked once, too. Its text counts: a change in the same
// tick of the clock does not show otherwise.
func TestNewScriptIsAskedOnce(t *testing.T) {
	cacheIn(t)
	w := wrap(t, "#!/bin/sh\n. DIR/settings\necho \"$*\" >>DIR/count\nexec /usr/bin/ssh \"$@\"\n")
	settings := filepath.Join(w.dir, "settings")
	for i, want := range []int{1, 1, 2, 2} {
		if i == 2 {
			put(t, settings, "SETTING=2\n")
		}
		if _, err := find(t.Context(), "ssh", w.script); err != nil || w.starts() != want {
			t.Fatalf("%d starts, %v, want %d", w.starts(), err, want)
		}
	}
	state, _ := stateOf(settings)
	for text, want := range map[string]bool{"SETTING=2\n": true, "SETTING=1\n": false} {
		k := kept{Parts: map[string]string{settings: state + withSum + checksum([]byte(text))}}
		if k.unchanged() != want {
			t.Errorf("%q: unchanged is %v", text, !want)
		}
	}
}

// A copy of ssh that has just been made is asked once, too.
func TestNewProgramIsAskedOnce(t *testing.T) {
	cacheIn(t)
	program := filepath.Join(t.TempDir(), "ssh")
	text, err := os.ReadFile("/usr/bin/ssh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := find(t.Context(), "ssh", program)
	if err != nil {
		t.Fatal(err)
	}
	if answers := recall(program); len(answers) == 0 {
		t.Errorf("no answer of %s is kept", first.Path)
	}
	text[len(text)-1]++
	if err := os.WriteFile(program, text, 0o700); err != nil {
		t.Fatal(err)
	}
	if answers := recall(program); len(answers) > 0 {
		t.Error("another program has its answers")
	}
}

// What a script may start is unknown, or is not ssh: nothing is kept of it.
func TestUncertainScripts(t *testing.T) {
	t.Setenv("SSHPACE_TEST_SETTING", "/usr/bin/ssh")
	const last = "\nexec /usr/bin/ssh \"$@\"\n"
	for _, text := range []string{
		"#!/usr/bin/python3\nimport os\nos.execv('/usr/bin/ssh', [])\n", "#!/bin/sh -l" + last, "#!/usr/bin/env -S bash" + last, "#!" + last,
		"#!/bin/sh\nX=$(cat /tmp/x)" + last, "#!/bin/sh\nX=`cat /tmp/x`" + last, "#!/bin/sh\necho \"$(date) $*\" >>/tmp/x" + last,
		"#!/bin/sh\neval exec /usr/bin/ssh '\"$@\"'", "#!/bin/sh\n. ./settings" + last, "#!/bin/sh\n. /etc/missing" + last, "#!/bin/sh\nread X </etc/x" + last,
		"#!/bin/sh\ntest -f /tmp/x && exec /tmp/ssh" + last, "#!/bin/sh\ntest -f /tmp/x || exec /tmp/ssh" + last,
		"#!/bin/sh\nif test -f /tmp/x; then exec /tmp/ssh; fi" + last, "#!/bin/sh\ncase $1 in -V) exec /tmp/ssh;; esac" + last,
		"#!/bin/sh\nssh() { /tmp/ssh; }\nssh" + last, "#!/bin/sh\nX=${0%/*}" + last, "#!/bin/bash\nX=(a)" + last, "#!/bin/sh\ncat <<E" + last,
		"#!/bin/bash\ncat <(date)" + last, "#!/bin/sh\nalias x=y" + last, "#!/bin/sh\ncd /tmp" + last, "#!/bin/sh\nexec ./ssh", "#!/bin/sh\nexec $1", "#!/bin/sh\nexec \"$@\"",
		"#!/bin/sh\nexec $PWD/ssh", "#!/bin/bash\nexec /usr/bin/ssh$RANDOM", "#!/bin/sh\nexec \\ssh", "#!/bin/sh\nexec /usr/bin/missing", "#!/bin/sh\nexec missing",
		"#!/bin/sh\nPATH=/tmp exec ssh", "#!/bin/sh\nSSHPACE_TEST_SETTING=/x date; exec $SSHPACE_TEST_SETTING", "#!/bin/sh\nexport LD_PRELOAD=/x" + last, "#!/bin/sh\nOPENSSL_CONF=/x exec /usr/bin/ssh",
		"#!/bin/sh\nPATH=relative:$PATH exec ssh", "#!/bin/sh\nPATH=relative:$PATH\nexec ssh", "#!/bin/sh\necho 'open" + last,
	} {
		path := filepath.Join(t.TempDir(), "ssh")
		put(t, path, text)
		if s := (source{}); s.add(t.Context(), path) == nil {
			t.Errorf("%q: depends on %v", text, s)
		}
	}
	for _, text := range []string{"exec docker exec box ssh \"$@\"", "exec env ssh \"$@\"", "exec nice /usr/bin/ssh \"$@\""} {
		path := filepath.Join(t.TempDir(), "ssh")
		put(t, path, "#!/bin/sh\nPATH=$PATH:"+filepath.Dir(path)+"\n"+text)
		put(t, filepath.Join(filepath.Dir(path), "docker"), "#!/bin/sh\n")
		s := source{}
		if err := s.add(t.Context(), path); err != nil || len(s.programs) > 0 {
			t.Errorf("%q: %v may answer, %v", text, s.programs, err)
		}
	}
	t.Setenv("BASH_ENV", "/tmp/x")
	path := filepath.Join(t.TempDir(), "ssh")
	if put(t, path, "#!/bin/bash"+last); (&source{}).add(t.Context(), path) == nil {
		t.Error("a start-up file is left out")
	}
}
