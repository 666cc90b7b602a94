package hostlist

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/ssh/sshtest"
)

// reference is what Ansible makes of an inventory.
type reference struct {
	Error  string
	Groups map[string][]string
	Hosts  map[string]struct {
		Address, Port, User, Key, Connection string
		Args                                 []string
	}
}

// pick chooses one of some.
func pick[T any](r *rand.Rand, some ...T) T { return some[r.IntN(len(some))] }

func randomPattern(r *rand.Rand) string {
	return pick(r, "h1", "h2", "h3.example", "h[1:4]", "h_5", "H6", "h[1:3]-b[a:c].x", "[2001:db8::7]:2022", "h[001:010:4]", "k[A:C]", "10.0.[0:1].[8:9]", "h.[1:2]:22", "h[01:03]", "h[1:9:3].x", "d-[a:c]", "r[1:2]n[08:10]", "10.0.0.7", "[::1]:22", "p:2200", "q[1:2]:77", "h[:2]")
}

func randomVar(r *rand.Rand) (name, text string) {
	name = pick(r, "ansible_host", "ansible_ssh_host", "ansible_port", "ansible_ssh_port", "ansible_user", "ansible_ssh_user", "http_port", "ansible_become",
		"ansible_private_key_file", "ansible_ssh_private_key_file", "ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_connection")
	switch {
	case strings.HasSuffix(name, "args"):
		return name, pick(r, "-J", "-C", "", "-4")
	case strings.HasSuffix(name, "connection"):
		return name, pick(r, "ssh", "smart", "", "local")
	case strings.HasSuffix(name, "host"):
		return name, pick(r, "10.1.2.3", "other.example", "alias", "::1", "")
	case strings.HasSuffix(name, "port"):
		return name, pick(r, "22", "2222", "2201")
	}
	return name, pick(r, "root", "deploy", "ann", "", "7")
}

var groupNames = []string{"web", "db", "eu", "prod", "a-b"}

// randomINI is an inventory in which every group has a section.
func randomINI(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(3) {
		fmt.Fprintln(&b, randomPattern(r))
	}
	for _, g := range groupNames {
		fmt.Fprintf(&b, "[%s] # comment\n", g)
		for range r.IntN(4) {
			fmt.Fprint(&b, randomPattern(r))
			for range r.IntN(3) {
				name, text := randomVar(r)
				fmt.Fprintf(&b, pick(r, " %s=%s", ` %s="%s"`, " %s='%s'", "\t%s=%s", ` %s="'%s'"`, ` '%s=%s'`, ` %s='"%s"'`), name, text)
			}
			fmt.Fprintln(&b, pick(r, "", " # comment", "   ", "#comment", " # it's"))
		}
	}
	for i, g := range groupNames {
		if r.IntN(2) == 0 && i > 0 {
			fmt.Fprintf(&b, "[%s:children]\n%s%s\n", g, groupNames[r.IntN(i)], pick(r, "", " # comment", "  ", "\t#c"))
		}
		if r.IntN(2) == 0 {
			name, text := randomVar(r)
			fmt.Fprintf(&b, "\n; vars\n[%s:vars]\n", pick(r, g, g, "all", "ungrouped"))
			fmt.Fprintf(&b, pick(r, "%s = %s\n", "%s=%s\n", "%s='%s'\n", "%s = \"%s\" # comment\n", "  %s='%s'  \n"), name, text)
			if strings.HasSuffix(name, "port") {
				fmt.Fprintf(&b, "%s=%s # port\n", name, pick(r, "2203", "2_206", "'2204'", `"2205"`, "0o26", "0X8_9A", "0b10110"))
			}
		}
		if r.IntN(5) == 0 {
			fmt.Fprintf(&b, "[%s:vars]\nansible_group_priority=%d\n", g, r.IntN(4))
		}
	}
	return b.String()
}

func randomYAMLVars(r *rand.Rand, n int) string {
	known := map[string]string{}
	for range n {
		name, text := randomVar(r)
		known[name] = text
	}
	var list []string
	for _, name := range sortedKeys(known) {
		text := known[name]
		if strings.ContainsAny(text, ":_") || r.IntN(4) == 0 {
			text = strconv.Quote(text)
		} else if text == "22" {
			text = pick(r, text, "0x16", "0b10110", "0026")
		}
		list = append(list, name+": "+text)
	}
	return "{" + strings.Join(list, ", ") + "}"
}

func randomYAML(r *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "all:\n  vars: %s\n", randomYAMLVars(r, r.IntN(3)))
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "  hosts: {%s: {}, h1: %s, lone: }\n", pick(r, "h2", "h_5", `"h[1:4]"`, "alone.example"), randomYAMLVars(r, 1))
	}
	fmt.Fprintf(&b, "  children:\n")
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "    ungrouped: {vars: %s, hosts: {h2: , free: %s}}\n", randomYAMLVars(r, 1), randomYAMLVars(r, 1))
	}
	for i, g := range groupNames {
		fmt.Fprintf(&b, "    %s:\n      vars: &v%d %s\n      hosts:\n", g, i, randomYAMLVars(r, r.IntN(3)))
		for range r.IntN(5) { // some of them twice
			fmt.Fprintf(&b, "        %q: %s\n", randomPattern(r), pick(r, "", randomYAMLVars(r, 2), fmt.Sprintf("{<<: *v%d, ansible_user: merged}", i)))
		}
		if i > 0 && r.IntN(2) == 0 {
			fmt.Fprintf(&b, "      children: {%s: }\n", groupNames[r.IntN(i)])
		}
	}
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "    %s: {hosts: {%q: {ansible_user: a, ansible_user: b}}}\n", pick(r, groupNames...), randomPattern(r))
	}
	return b.String()
}

// randomFiles is an inventory with directories of variables beside it.
func randomFiles(r *rand.Rand) (name string, files map[string]string) {
	files = map[string]string{}
	if name = "site.yml"; r.IntN(2) == 0 {
		name = pick(r, "site", "site.ini")
		files[name] = randomINI(r)
	} else {
		files[name] = randomYAML(r)
	}
	for _, g := range append(groupNames, "all", "nobody", "ungrouped") {
		if r.IntN(3) == 0 {
			files["group_vars/"+g+pick(r, "", ".yml", ".yaml", "/main.yml", "/a.json", "/sub/b", "/.git/c", "/d.d/e.yml", "/f~", "/g.txt")] = randomYAMLVars(r, 2) + "\n"
		}
	}
	for _, h := range []string{"h1", "h2", "h_5", "lone"} {
		if r.IntN(5) == 0 {
			files["host_vars/"+h+pick(r, "", ".yml", ".json", "/x.yaml")] = randomYAMLVars(r, 2) + "\n"
		}
	}
	return name, files
}

// besides are files of a directory of inventories: read, and passed over.
func besides(r *rand.Rand, files map[string]string) {
	text := "more1 ansible_user=more\n[web]\nh2\nmore2\n[db]\nh_5\n"
	for range r.IntN(3) {
		files[pick(r, "more.ini", "zz.inv", "sub/hosts.ini", "sub/deep/hosts", "a.cfg", "b.txt", ".hidden", "c.bak", "vars_plugins/x", "sub/host_vars/h2", "README.md")] = text
	}
}

// Inventories mean what they mean to Ansible: who is in which group, and how each host is reached.
func TestAgreesWithAnsible(t *testing.T) {
	count, seed := seedtest.Cases(t, 80)
	r := rand.New(rand.NewPCG(seed, 2026))
	var paths []string
	for range count {
		name, files := randomFiles(r)
		asDirectory := r.IntN(3) == 0
		if asDirectory {
			besides(r, files)
		}
		path := filepath.Join(write(t, files), name)
		if asDirectory {
			path = filepath.Dir(path)
		}
		paths = append(paths, path)
	}
	for i, want := range sshtest.Reference[reference](t, "ansible-core", paths) {
		got, err := load(t, paths[i])
		if err != nil || want.Error != "" {
			t.Errorf("%s: our error %v, Ansible's %q", paths[i], err, want.Error)
			continue
		}
		compareWith(t, paths[i], got, want)
	}
}

func compareWith(t *testing.T, path string, got *Inventory, want reference) {
	t.Helper()
	for name, hosts := range want.Groups {
		ours, err := got.Group("", name)
		slices.Sort(ours)
		if err != nil || !slices.Equal(ours, hosts) {
			t.Errorf("%s: group %s is %q, %v; Ansible has %q", path, name, ours, err, hosts)
		}
	}
	if ours := len(got.Hosts()); ours != len(want.Hosts) {
		t.Errorf("%s: %d hosts, Ansible has %d", path, ours, len(want.Hosts))
	}
	for name, reached := range want.Hosts {
		known, err := got.effective(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, of := range [][]string{addressVars, portVars, userVars, keyVars, {connectionVar}, {argsVar}, {commonArgsVar}, {extraArgsVar}} {
			theirs := append([]string{reached.Address, reached.Port, reached.User, reached.Key, reached.Connection}, reached.Args...)[i]
			if ours, err := known.last(of); err != nil || ours != theirs {
				t.Errorf("%s: %s of %s is %q, %v, Ansible has %q", path, of[0], name, ours, err, theirs)
			}
		}
		if slices.ContainsFunc(reached.Args, func(args string) bool { return args == "-J" }) || reached.Connection == "local" {
			continue // an error, and left out
		}
		expected := host.Host{Name: name, Address: reached.Address, User: reached.User, Known: reached.User != ""}
		port, _ := strconv.Atoi(reached.Port)
		if expected.Port = uint16(port); port > 0 || expected.Known {
			expected.Address = cmp.Or(expected.Address, name)
		}
		ours, _, _ := strings.Cut(complete(t, got, name), " ")
		if ours != expected.Exact() {
			t.Errorf("%s: %s is reached by %s, Ansible's way is %s", path, name, ours, expected.Exact())
		}
	}
}
