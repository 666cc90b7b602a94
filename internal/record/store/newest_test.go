package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Results are found by what they hold: advice is not made of logins, though they be the last.
func TestNewest(t *testing.T) {
	s := Store(t.TempDir())
	if err := Make(s.results()); err != nil {
		t.Fatal(err)
	}
	put := func(name string, c record.Campaign, more ...record.Record) string {
		path := filepath.Join(s.results(), name)
		file, err := os.Create(path)
		if err == nil {
			err = Put(file, append([]record.Record{&c}, more...))
		}
		if err != nil || file.Close() != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, err := s.NewestRanking(); err == nil {
		t.Error("there is nothing, and it was found")
	}
	moved := &record.Slices{Sitting: 1}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ciphers := put("1-nas.jsonl", record.Campaign{Format: record.FormatVersion, Started: start, Target: "nas", Combos: alg.Combinations{Total: 2, Bulk: 2}}, moved)
	put("2-nas.jsonl", record.Campaign{Format: record.FormatVersion, Started: start, Target: "nas", Combos: alg.Combinations{Total: 2, Bulk: 2}}) // it failed
	modes := put("3-nas.jsonl", record.Campaign{Format: record.FormatVersion, Started: start, Target: "nas"}, &record.Reading{Kind: record.LongRun})
	logins := put("2-loopback.jsonl", record.Campaign{Format: record.FormatVersion, Started: start, Target: "loopback"})
	if got, err := s.NewestRanking(); got != ciphers || err != nil {
		t.Errorf("newest ranking: %s, %v", got, err)
	}
	s.remember(logins)
	if got, err := s.Newest(); got != logins || err != nil {
		t.Errorf("newest: %s, %v", got, err)
	}
	if got, err := s.NewestRanking(); got != ciphers || err != nil {
		t.Errorf("newest ranking beside a later run of logins: %s, %v", got, err)
	}
	if got := s.newestOf("nas", Ranks); got != ciphers {
		t.Errorf("newest ranking of nas, beside a later one that failed and one of modes: %s", got)
	}
	if got := s.newestOf("nas", Shows); got != modes {
		t.Errorf("newest of nas: %s", got)
	}
	if got := s.newestOf("backup", Shows); got != "" {
		t.Errorf("newest of a host without one: %s", got)
	}
}

// A result has a short word, which finds it again: its host, as long as it is the newest one that
// its command measured there.
func TestWord(t *testing.T) {
	s, elsewhere := Store(filepath.Join(t.TempDir(), strings.Repeat("long", 20))), filepath.Join(t.TempDir(), "mine.jsonl")
	put := func(path, target, command string) {
		if err := Make(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		c := &record.Campaign{Format: record.FormatVersion, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Target: target, Command: command}
		if err := Write(nil, path, []record.Record{c}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ path, target, command, word string }{
		{filepath.Join(s.results(), "1-nas.jsonl"), "nas", "bench", "1-nas.jsonl"},
		{filepath.Join(s.results(), "2-nas.jsonl"), "nas", "bench", "nas"},
		{filepath.Join(s.results(), "3-nas.jsonl"), "nas", "login", "nas"},
		{filepath.Join(s.results(), "4-u@h:22.jsonl"), "u@[::1]:22", "bench", "'u@[::1]:22'"},
		{filepath.Join(s.Machines(), "5.jsonl"), "here", "limits", "5.jsonl"},
		{elsewhere, "nas", "bench", elsewhere},
	} {
		put(c.path, c.target, c.command)
		defer func() {
			word := s.Word(c.path)
			path, err := s.Find(strings.Trim(word, "'"), func(host string) (string, error) { return host, nil }, By(c.command))
			if word != c.word || path != c.path || err != nil {
				t.Errorf("%s is named %s, not %s, which finds %s, %v", c.path, word, c.word, path, err)
			}
		}()
	}
}

// What is in the working directory is named from there.
func TestNameFromHere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for path, want := range map[string]string{filepath.Join(dir, "a.jsonl"): "a.jsonl", filepath.Join(dir, "b", "a.jsonl"): "b/a.jsonl", filepath.Dir(dir) + "/a.jsonl": filepath.Dir(dir) + "/a.jsonl"} {
		if got := Store("").Name(path, Shows); got != want {
			t.Errorf("%s is named %s, want %s", path, got, want)
		}
	}
}

// A path in the home directory is shown as it is typed.
func TestShown(t *testing.T) {
	for _, test := range []struct{ store, path, want string }{
		{"/home/u/.local/state/sshpace", "/home/u/.local/state/sshpace/results/a.jsonl", "~/.local/state/sshpace/results/a.jsonl"},
		{"/home/u/.local/state/sshpace", "/home/u2/a.jsonl", "/home/u2/a.jsonl"},
		{"/home/u/.local/state/sshpace", "a.jsonl", "a.jsonl"},
		{"/var/state/sshpace", "/var/state/sshpace/results/a.jsonl", "/var/state/sshpace/results/a.jsonl"},
		{"", "/a.jsonl", "/a.jsonl"},
		{"/.local/state/sshpace", "/a.jsonl", "/a.jsonl"},
	} {
		if got := Store(test.store).Shown(test.path); got != test.want {
			t.Errorf("%s in %s is shown as %s, not %s", test.path, test.store, got, test.want)
		}
	}
}
