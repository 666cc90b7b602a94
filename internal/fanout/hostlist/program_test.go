package hostlist

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/seedtest"
)

// script makes an inventory script of a program for sh.
func script(t *testing.T, program string) string {
	t.Helper()
	name := filepath.Join(write(t, map[string]string{"list": "#!/bin/sh\n" + program + "\n"}), "list")
	if err := os.Chmod(name, 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// The answer of a script that is named is an inventory; in a directory it is not run.
func TestScriptsAreRun(t *testing.T) {
	name := script(t, `test "$*" = --list || exit 9
cat <<'E'
{	"web": ["w1", "w2"], "eu": {"children": ["web"], "vars": {"ansible_user": "ann"}},
	"_meta": {"hostvars": {"w1": {"ansible_port": 2222, "ansible_ssh_common_args": "-J \u0067ate", "note": "\ud83d\ude00"}}}}
E`)
	v, err := load(t, name)
	if err != nil {
		t.Fatal(err)
	}
	if got := complete(t, v, "w1"); got != "w1=ann@w1:2222 ProxyJump=gate" {
		t.Errorf("w1 becomes %s", got)
	}
	if hosts, err := v.Group("", "eu"); err != nil || len(hosts) != 2 {
		t.Errorf("%q, %v", hosts, err)
	}
	if _, err := load(t, filepath.Dir(name)); err == nil || !strings.Contains(err.Error(), "is a program, and programs in a directory are not run") {
		t.Errorf("in a directory: %v", err)
	}
	os.Chmod(name, 0o600)
	if _, err := load(t, name); err == nil || !strings.Contains(err.Error(), "is not executable") {
		t.Errorf("not executable: %v", err)
	}
}

// A script that writes no variables with --list is asked about each host, once; one that fails then
// is an error that names the host.
func TestScriptsAreAskedAboutHosts(t *testing.T) {
	const program = `echo "$*" >>"$0.asked"
case "$1 $2" in
"--list ") echo '{"web": ["w1", "w2", "w3"], "db": {"hosts": ["w1"], "vars": {"ansible_user": "ann"}}}' ;;
"--host w1") echo '{"ansible_port": 2222, "note": "\u00e9"}' ;;
"--host w2") echo '{}' ;;
*) FAILS ;;
esac`
	name := script(t, strings.ReplaceAll(program, "FAILS", "true"))
	v, err := load(t, name)
	if err != nil || len(v.Warnings()) > 0 {
		t.Fatalf("%v, %q", err, v.Warnings())
	}
	if got := complete(t, v, "w1"); got != "w1=ann@w1:2222" {
		t.Errorf("w1 becomes %s", got)
	}
	said, _ := os.ReadFile(name + ".asked")
	if lines := strings.Fields(string(said)); len(lines) != 7 {
		t.Errorf("asked %q", said)
	}
	for fails, want := range map[string]string{
		"echo no such host >&2; exit 3": ": --host w3: exit status 3: no such host", "echo '[1]'": "--host w3: ", "echo [": "--host w3: ", "yes": "--host w3: it writes more than",
	} {
		if _, err := load(t, script(t, strings.ReplaceAll(program, "FAILS", fails))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", fails, err, want)
		}
	}
}

// A command may write any form of an inventory.
func TestInventoryCommand(t *testing.T) {
	for text, want := range map[string]string{
		"[web]\nw1 ansible_port=22\n":                      "w1=w1:22",
		"web: {hosts: {w1: {ansible_user: ann}}}\n":        "w1=ann@w1",
		`{"web": ["w1"]}`:                                  "w1",
		`{"web": {"hosts": {"w1": {"ansible_port": 22}}}}`: "w1=w1:22",
	} {
		v := New()
		if err := v.AddCommand(t.Context(), "printf %s '"+text+"'"); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if hosts, err := v.Group("", "web"); err != nil || !slices.Equal(hosts, []string{"w1"}) {
			t.Errorf("%s: web is %q, %v", text, hosts, err)
		}
		if got := complete(t, v, "w1"); got != want {
			t.Errorf("%s: w1 becomes %s, want %s", text, got, want)
		}
	}
}

// A program that hangs, floods or fails is an error that says so, soon.
func TestBadPrograms(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, fmt.Errorf("too slow"))
	defer cancel()
	if err := New().Add(ctx, script(t, "sleep 600 & sleep 600")); err == nil || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("hangs: %v", err)
	}
	for program, want := range map[string]string{
		"yes":                                    "it writes more than 16384 KiB",
		"yes no | head -c 9000000 >&2; exit 3":   "exit status 3: no",
		"echo no cloud >&2; exit 4":              "exit status 4: no cloud",
		"true":                                   "it writes nothing",
		`printf '{"web": ["w\377"]}'`:            "not UTF-8",
		`printf '\377\376[\0'`:                   "UTF-16",
		`printf '{"web": ["-oProxyCommand=x"]}'`: "must not begin with -",
		`printf '{"web": ["a b"]}'`:              "must not contain ' '",
		`printf '{"web": ["a\\nb"]}'`:            `must not contain '\n'`,
		`printf '{"a": {"children": ["b"]}, "b": {"children": ["a"]}}'`: "below itself",
		`printf '{"a": '; yes '[' | head -n 2000`:                       "nested more than 1000 deep",
	} {
		if err := New().Add(t.Context(), script(t, program)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", program, err, want)
		}
		if strings.Contains(program, "yes") {
			continue
		}
		if err := New().AddCommand(t.Context(), program); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("command %s: error %v, want one with %q", program, err, want)
		}
	}
}

// A program that says why it names no hosts, and ends well, is quoted.
func TestProgramWithoutHosts(t *testing.T) {
	v := New()
	if err := v.AddCommand(t.Context(), "echo no credentials >&2; echo '{}'"); err != nil || !strings.Contains(strings.Join(v.Warnings(), ""), "names no hosts: no credentials") {
		t.Errorf("%v, %q", err, v.Warnings())
	}
}

// A text of 50 MB is refused before it is parsed.
func TestHugeJSON(t *testing.T) {
	name := filepath.Join(write(t, map[string]string{"list.json": `{"web": ["` + strings.Repeat("x", 50<<20) + `"]}`}), "list.json")
	if _, err := load(t, name); err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("%v", err)
	}
}

// TestLargeListings: neither a host in many groups nor many groups in one take time that grows with
// their square, and a chain of groups has a limit.
func TestLargeListings(t *testing.T) {
	var many, children, chain strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, `"g%d": ["h"],`, i)
		fmt.Fprintf(&children, `"g%d",`, i)
		fmt.Fprintf(&chain, `"g%d": {"children": ["g%d"]},`, i, i+1)
	}
	for text, want := range map[string]string{
		"{" + many.String() + `"g": ["h"]}`: "", `{"top": {"children": [` + children.String() + `"x"]}}`: "",
		"{" + chain.String() + `"g": ["h"]}`: "is below more than 1000 others",
	} {
		_, err := load(t, filepath.Join(write(t, map[string]string{"list": text}), "list"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.30s: %v, want %q", text, err, want)
		}
	}
}

// Listings of random inventories by ansible-inventory mean the same as these, from a file and from
// a command.
func TestListingsAgree(t *testing.T) {
	count, seed := seedtest.Cases(t, 2)
	r := rand.New(rand.NewPCG(seed, 2027))
	for range count {
		name, files := randomFiles(r)
		path := filepath.Join(write(t, files), name)
		want, err := load(t, path)
		if err != nil {
			t.Fatal(err)
		}
		listing, err := exec.Command("ansible-inventory", "--list", "-i", path).Output()
		if err != nil {
			t.Fatalf("%v: install the package ansible-core", err)
		}
		name = filepath.Join(write(t, map[string]string{"list.txt": string(listing)}), "list.txt")
		file, err := load(t, name)
		if err != nil {
			t.Fatal(err)
		}
		got := New()
		if err := got.AddCommand(t.Context(), "cat "+name); err != nil {
			t.Fatal(err)
		}
		for _, v := range []*Inventory{got, file} {
			for _, group := range want.order {
				ours, _ := v.Group("", group)
				theirs, _ := want.Group("", group)
				slices.Sort(ours)
				slices.Sort(theirs)
				if !slices.Equal(ours, theirs) {
					t.Errorf("%s: group %s is %q, directly %q", path, group, ours, theirs)
				}
			}
			for _, host := range want.names {
				if ours, directly := complete(t, v, host), complete(t, want, host); ours != directly && !(strings.HasPrefix(ours, "error") && strings.HasPrefix(directly, "error")) {
					t.Errorf("%s: %s becomes %s, directly %s", path, host, ours, directly)
				}
			}
		}
	}
}
