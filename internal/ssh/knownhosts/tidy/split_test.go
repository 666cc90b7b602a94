package tidy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// named makes hosts of names, without checking them.
func named(names ...string) []host.Host {
	hosts := make([]host.Host, len(names))
	for i, name := range names {
		hosts[i].Name = name
	}
	return hosts
}

// readDir returns the files of a directory.
func readDir(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

func TestSplitOwnNames(t *testing.T) {
	k1, k2, k3, k4 := sshtest.KeyText(1), sshtest.KeyText(2), sshtest.KeyText(3), sshtest.KeyText(4)
	file := sshtest.KnownHostsFile(t, strings.Join([]string{
		"Db1,10.0.0.1 " + k1 + " comment\r",
		"[db1]:2222,[10.0.0.1]:2222 " + k2,
		"db1 " + k3,
		"# a comment",
		"broken line",
		"*.net,!x.net " + k3,
		"web.net " + k1,
		"@revoked * " + k4,
		"@cert-authority web.net " + k2,
		knownhosts.HashName("secret") + " " + k1,
		"db1 " + k1,
		"fe80::1%eth0 " + k1,
	}, "\n"))
	dir := filepath.Join(t.TempDir(), "split")
	before, _ := os.ReadFile(file)
	result, err := Split(t.Context(), index.Open(file), dir, SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revoked := "@revoked * " + k4 + "\n"
	want := map[string]string{
		"db1":          "db1 " + k1 + " comment\n[db1]:2222 " + k2 + "\ndb1 " + k3 + "\n" + revoked + "db1 " + k1 + "\n",
		"10.0.0.1":     "10.0.0.1 " + k1 + " comment\n[10.0.0.1]:2222 " + k2 + "\n" + revoked,
		"web.net":      "*.net,!x.net " + k3 + "\nweb.net " + k1 + "\n" + revoked + "@cert-authority web.net " + k2 + "\n",
		"fe80::1%eth0": revoked + "fe80::1%eth0 " + k1 + "\n",
		".patterns":    "*.net,!x.net " + k3 + "\n" + revoked + "@cert-authority web.net " + k2 + "\n",
	}
	if diff := cmp.Diff(want, readDir(t, dir)); diff != "" {
		t.Error(diff)
	}
	wantResult := SplitResult{Dir: dir, Written: 5, Patterns: 3, Unmatched: 1, Unreadable: 1,
		Kept: []string{}, Missing: []string{}, Unsafe: []string{}, Unresolved: []string{}}
	if diff := cmp.Diff(wantResult, result); diff != "" {
		t.Error(diff)
	}
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("the original has changed")
	}
	for _, path := range []string{"db1", ".patterns", "."} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[info.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
}

func TestSplitNamedHosts(t *testing.T) {
	k1, k2, k3 := sshtest.KeyText(1), sshtest.KeyText(2), sshtest.KeyText(3)
	file := sshtest.KnownHostsFile(t, strings.Join([]string{
		knownhosts.HashName("db1") + " " + k1,
		knownhosts.HashName("[db1]:2222") + " " + k2,
		knownhosts.HashName("10.0.0.1") + " " + k1,
		knownhosts.HashName("[10.0.0.1]:2222") + " " + k2,
		knownhosts.HashName("other") + " " + k3,
		"@revoked " + knownhosts.HashName("elsewhere") + " " + k3,
		"plain " + k3,
	}, "\n"))
	addresses := map[string][]string{"db1": {"10.0.0.1", "10.9.9.9"}}
	resolve := func(_ context.Context, host string) ([]string, error) {
		if addresses[host] == nil {
			return nil, errors.New("no such host")
		}
		return addresses[host], nil
	}
	var progress []string
	dir := filepath.Join(t.TempDir(), "split")
	result, err := Split(t.Context(), index.Open(file), dir, SplitOptions{
		Hosts: append([]host.Host{{Name: "DB1"}, {Name: "db1", User: "root", Port: 2222}, {Name: "nowhere"}},
			named("../up", "a/b", "..", ".", "", "-x", ".hidden", "x.old", "a b", "a\nb", strings.Repeat("x", 256))...),
		Resolve:  resolve,
		Progress: func(done, total int) { progress = append(progress, fmt.Sprintf("%d/%d", done, total)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"db1":       "db1 " + k1 + "\n[db1]:2222 " + k2 + "\n",
		"10.0.0.1":  "10.0.0.1 " + k1 + "\n[10.0.0.1]:2222 " + k2 + "\n",
		".patterns": "@revoked " + strings.Fields(index.Open(file).Lookup("elsewhere", 0)[0].Hosts)[0] + " " + k3 + "\n",
	}
	if diff := cmp.Diff(want, readDir(t, dir)); diff != "" {
		t.Error(diff)
	}
	if len(result.Unsafe) != 11 || result.Unmatched != 2 || result.Patterns != 1 {
		t.Errorf("result %+v", result)
	}
	if diff := cmp.Diff([]string{"nowhere"}, result.Missing); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"nowhere: no such host"}, result.Unresolved); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1/2", "2/2", "1/1"}, progress); diff != "" {
		t.Error(diff)
	}
}

func TestSplitKeepUnmatched(t *testing.T) {
	file := sshtest.KnownHostsFile(t, knownhosts.HashName("a")+" "+sshtest.KeyText(1)+"\n"+knownhosts.HashName("b")+" "+sshtest.KeyText(2)+"\n")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Split(t.Context(), index.Open(file), dir, SplitOptions{Hosts: named("a"), KeepUnmatched: true}); err != nil {
		t.Fatal(err)
	}
	rest := index.Open(filepath.Join(dir, patternsFile))
	if len(rest.Lookup("a", 0)) != 0 || len(rest.Lookup("b", 0)) != 1 {
		t.Errorf("%s holds %q", patternsFile, readDir(t, dir)[patternsFile])
	}
}

func TestSplitAgain(t *testing.T) {
	file := sshtest.KnownHostsFile(t, "a "+sshtest.KeyText(1)+"\nb "+sshtest.KeyText(2)+"\nc "+sshtest.KeyText(3)+"\n")
	dir := filepath.Join(t.TempDir(), "split")
	split := func(force bool) SplitResult {
		t.Helper()
		result, err := Split(t.Context(), index.Open(file), dir, SplitOptions{Force: force})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	split(false)
	own := filepath.Join(dir, "a") // ssh learns another key
	if err := os.WriteFile(own, []byte("a "+sshtest.KeyText(1)+"\na "+sshtest.KeyText(9)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := sshtest.KnownHostsFile(t, "precious\n")
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if r := split(false); r.Written != 0 || r.Unchanged != 2 || fmt.Sprint(r.Kept) != "[a b]" {
		t.Errorf("second run: %+v", r)
	}
	if len(index.Open(filepath.Join(dir, "a")).Lookup("a", 0)) != 2 {
		t.Error("the key that was learned is lost")
	}
	if r := split(true); r.Written != 2 || r.Unchanged != 2 || len(r.Kept) != 0 {
		t.Errorf("forced run: %+v", r)
	}
	if text, _ := os.ReadFile(outside); string(text) != "precious\n" {
		t.Errorf("a link out of the directory was followed: %q", text)
	}
	if got := readDir(t, dir)["b"]; got != "b "+sshtest.KeyText(2)+"\n" {
		t.Errorf("b holds %q", got)
	}
}

func TestSplitRefuses(t *testing.T) {
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	source := filepath.Join(own, "host") // a source under the name of one of its own hosts
	if err := os.WriteFile(source, []byte("host "+sshtest.KeyText(1)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		about, dir string
		ctx        context.Context
	}{
		{"shared directory", shared, t.Context()},
		{"source among the targets", own, t.Context()},
		{"cancelled", filepath.Join(t.TempDir(), "new"), cancelled},
		{"not a directory", source, t.Context()},
	} {
		if _, err := Split(c.ctx, index.Open(source), c.dir, SplitOptions{Force: true}); err == nil {
			t.Errorf("%s: no error", c.about)
		}
	}
	if text, _ := os.ReadFile(source); string(text) != "host "+sshtest.KeyText(1)+"\n" {
		t.Errorf("the source was written: %q", text)
	}
	if left := readDir(t, shared); len(left) != 0 {
		t.Errorf("files in a shared directory: %v", left)
	}
}

// TestSplitAgainstKeygen: in the file of a host ssh-keygen finds the same keys as in the original.
func TestSplitAgainstKeygen(t *testing.T) {
	file := sshtest.KnownHostsFile(t, strings.Join([]string{
		"a,b,c " + sshtest.KeyText(1), "B " + sshtest.KeyText(2), "[a]:2222 " + sshtest.KeyText(3), knownhosts.HashName("[b]:2222") + " " + sshtest.KeyText(4),
		"@cert-authority *,!c " + sshtest.KeyText(5), "@revoked [*]:2222 " + sshtest.KeyText(6), "? " + sshtest.KeyText(7), "broken", knownhosts.HashName("a") + " " + sshtest.KeyText(8),
	}, "\n"))
	dir := filepath.Join(t.TempDir(), "split")
	if _, err := Split(t.Context(), index.Open(file), dir, SplitOptions{Hosts: append(named("a", "b", "c"), host.Host{Name: "a", Port: 2222}, host.Host{Name: "b", Port: 2222})}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "[a]:2222", "[b]:2222"} {
		host, _ := knownhosts.SplitHostPort(name)
		want, _ := sshtest.FindKeys(t, file, name)
		got, _ := sshtest.FindKeys(t, filepath.Join(dir, host), name)
		for i := range want {
			want[i].Line = 0
		}
		for i := range got {
			got[i].Line = 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-original +split):\n%s", name, diff)
		}
	}
}

// TestSplitHostileFile: names that would lead out of the directory are refused when they come from
// the file, too.
func TestSplitHostileFile(t *testing.T) {
	key := " " + sshtest.KeyText(1) + "\n"
	file := sshtest.KnownHostsFile(t, "../up"+key+"/etc/passwd"+key+"..,.ssh"+key+"good"+key+"[../port]:2222"+key+".patterns"+key+"a\x1b[31mb"+key)
	parent := t.TempDir()
	dir := filepath.Join(parent, "split")
	result, err := Split(t.Context(), index.Open(file), dir, SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"good": "good" + key, patternsFile: ""}
	if diff := cmp.Diff(want, readDir(t, dir)); diff != "" {
		t.Error(diff)
	}
	if len(result.Unsafe) != 7 || strings.Contains(strings.Join(result.Unsafe, ""), "\x1b") {
		t.Errorf("refused: %q", result.Unsafe)
	}
	if entries, _ := os.ReadDir(parent); len(entries) != 1 {
		t.Errorf("beside the directory: %v", entries)
	}
}

// A key that was revoked since the last split is refused, though the file of its host is kept.
func TestSplitRevokesInKeptFiles(t *testing.T) {
	k1, k2 := sshtest.KeyText(1), sshtest.KeyText(2)
	dir := filepath.Join(t.TempDir(), "split")
	split := func(text string) SplitResult {
		result, err := Split(t.Context(), index.Open(sshtest.KnownHostsFile(t, text)), dir, SplitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	split("db1 " + k1 + "\n")
	if err := os.WriteFile(filepath.Join(dir, "db1"), []byte("db1 "+k1+"\ndb1 "+k2+"\n"), 0o600); err != nil { // as ssh learns
		t.Fatal(err)
	}
	if again := split("db1 " + k1 + "\n@revoked db1 " + k2 + "\n"); len(again.Kept) != 1 {
		t.Fatalf("kept %v", again.Kept)
	}
	x := index.Open(filepath.Join(dir, "db1"), filepath.Join(dir, patternsFile))
	if revoked := slices.ContainsFunc(x.Lookup("db1", 0), func(e index.Entry) bool { return e.Marker == knownhosts.MarkerRevoked }); !revoked {
		t.Error("ssh would accept the revoked key")
	}
}
