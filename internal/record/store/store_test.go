package store

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/record"
	"sshpace/internal/sys/journal"
)

// However a host is called, its file stays in the directory of results and has a name that every
// file system and terminal can take.
func TestLabel(t *testing.T) {
	for target, want := range map[string]string{
		"loopback":                "-loopback",
		"me@nas:2222":             "-me@nas_2222",
		"../../etc/passwd":        "-.._.._etc_passwd",
		"..":                      "-..",
		"":                        "-",
		"a\x00b\n\x1b[31m":        "-a_b___31m",
		"/etc/passwd":             "-_etc_passwd",
		"[fe80::1%eth0]":          "-_fe80__1_eth0_",
		"bücher":                  "-b_cher",
		strings.Repeat("x", 5000): "-" + strings.Repeat("x", 100),
	} {
		if got := label(target); got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
}

func FuzzLabel(f *testing.F) {
	f.Add("../..")
	f.Fuzz(func(t *testing.T, target string) {
		name := journal.Name(time.Unix(0, 0), label(target))
		if filepath.Base(name) != name || len(name) > 255 || strings.ContainsFunc(name, func(r rune) bool { return r < '-' || r > 'z' }) {
			t.Errorf("%q makes the name %q", target, name)
		}
	})
}

// A file that was cut anywhere is mended so that every whole record stays and the next one starts a
// line of its own.
func TestResumeAfterACutAtEveryByte(t *testing.T) {
	var whole bytes.Buffer
	sink := record.Write(&whole)
	trial, sample := record.Trial{ID: 1}, record.Sample{Trial: 1, Outcome: record.OK}
	for _, r := range []record.Record{&record.Campaign{Format: record.FormatVersion, Target: "loopback"}, &trial, &sample} {
		if err := sink(r); err != nil {
			t.Fatal(err)
		}
	}
	lines := bytes.SplitAfter(whole.Bytes(), []byte("\n"))
	path := filepath.Join(t.TempDir(), "run.jsonl")
	for cut := len(lines[0]) - 1; cut <= whole.Len(); cut++ {
		if err := os.WriteFile(path, whole.Bytes()[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Resume(path)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		kept := len(f.Old.Trials) + len(f.Old.Samples)
		if err := record.Write(f)(&record.Finding{What: "next"}); err != nil {
			t.Fatal(err)
		}
		f.Close()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Concat(slices.Concat(lines[:1+kept]...), []byte(`{"finding":{"what":"next"}}`+"\n"))
		if string(text) != string(want) {
			t.Fatalf("cut at %d:\n%s\nwant:\n%s", cut, text, want)
		}
	}
}

// What is no result is refused and stays as it is.
func TestResumeLeavesForeignFilesAlone(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"one line":          "my only copy of the thesis",
		"cut first line":    `{"campaign":{"format":2,"tar`,
		"two lines":         "a\nb",
		"newer":             `{"campaign":{"format":99}}` + "\n" + `{"tri`,
		"damaged in middle": `{"campaign":{"format":2}}` + "\n{\n" + `{"tri`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Resume(path)
		if err == nil {
			f.Close()
			t.Errorf("%s: resumed", name)
		}
		if now, _ := os.ReadFile(path); string(now) != text {
			t.Errorf("%s: the file was changed to %q", name, now)
		}
	}
	if _, err := Resume(dir); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("resume of a directory: %v", err)
	}
}

func TestASecondWriterIsKeptOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	f, err := Store("").Create(path, "loopback")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := record.Write(f)(&record.Campaign{Format: record.FormatVersion}); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(path); err == nil || !strings.Contains(err.Error(), "another sshpace") {
		t.Errorf("resume of a file in use: %v", err)
	}
	if _, err := Store("").Create(path, "loopback"); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("create of a file that exists: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the result: %v, %v", info.Mode(), err)
	}
}
