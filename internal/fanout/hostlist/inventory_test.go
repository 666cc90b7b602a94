package hostlist

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet/hostset"
)

// write makes files below a new directory; names may have directories.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// load reads one inventory.
func load(t *testing.T, path string) (*Inventory, error) {
	t.Helper()
	v := New()
	return v, v.Add(t.Context(), path)
}

// complete is what the inventory makes of a name, as -w would have it.
func complete(t *testing.T, v *Inventory, name string) string {
	t.Helper()
	h, err := host.Parse(name)
	if err == nil {
		err = v.Complete(&h)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return strings.TrimRight(h.Exact()+" "+strings.ReplaceAll(h.Settings, "\n", " "), " ")
}

// TestVariables: other variables of hosts and groups are kept, as Ansible merges them; those that
// cannot be read are errors only where they are asked for.
func TestVariables(t *testing.T) {
	dir := write(t, map[string]string{
		"site.ini":             "[web]\nw1 rack=7 note='a b'\nw2\n[web:vars]\nrack=r0\nrole=web\n[all:vars]\nrole=any\ndc=x\n",
		"group_vars/web.yml":   "list: [1]\nport: 0x16\nnone:\nbig: " + strings.Repeat("x", 100<<10+1) + "\nfits: " + strings.Repeat("x", 100<<10) + "\n",
		"host_vars/w2/own.yml": "role: other\ntemplate: '{{ x }}'\nsecret: !vault x\n",
	})
	v, err := load(t, filepath.Join(dir, "site.ini"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"w1": "map[dc:x note:a b port:22 rack:7 role:web]", "w2": "map[dc:x port:22 rack:r0 role:other]", "w3": "map[]"} {
		if got, err := v.Variables(host.Host{Name: name}, []string{"dc", "none", "note", "port", "rack", "role"}); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s has %v, want %s, %v", name, got, want, err)
		}
	}
	if got, err := v.Variables(host.Host{Name: "w1"}, []string{"fits"}); err != nil || len(got["fits"]) != 100<<10 {
		t.Error(err)
	}
	for name, want := range map[string]string{"template": "is a template", "secret": "is encrypted", "list": "is not a single value", "big": "is longer than 100 KiB"} {
		if _, err := v.Variables(host.Host{Name: "w2"}, []string{name}); err == nil || !strings.Contains(err.Error(), name+" "+want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const site = `
mail:2525
[web]
w[1:2] ansible_host=192.0.2.9 ansible_user=deploy
w3
[web:vars]
ansible_port=2222
`

// What the user says wins over the inventory, which wins over nothing.
func TestCompleteFillsInWhatIsNotSaid(t *testing.T) {
	v, err := load(t, filepath.Join(write(t, map[string]string{"site.ini": site}), "site.ini"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"mail":                   "mail=mail:2525",
		"w1":                     "w1=deploy@192.0.2.9:2222",
		"root@w1:22":             "root@w1=192.0.2.9:22",
		"w3":                     "w3=w3:2222",
		"w1=192.0.2.1":           "w1=192.0.2.1",
		"elsewhere.example":      "elsewhere.example",
		"root@elsewhere.example": "root@elsewhere.example",
	} {
		if got := complete(t, v, name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

// A value that only Ansible can read stops the host that needs it, and no other.
func TestSecretsAndTemplatesAreSaid(t *testing.T) {
	v, err := load(t, filepath.Join(write(t, map[string]string{"hosts.yml": `
all:
  hosts:
    a: {ansible_user: !vault "$ANSIBLE_VAULT;1.1;AES256 61"}
    b: {ansible_host: "{{ inventory_hostname }}.example"}
    c: {ansible_password: !vault "x", ansible_user: root}
    d: {ansible_port: none}
  vars: {ansible_ssh_common_args: -A, http_port: "{{ x }}"}
`, "group_vars/all.yml": "$ANSIBLE_VAULT;1.1;AES256\n6162\n"}), "hosts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a": "ansible_user is encrypted with ansible-vault", "b": "ansible_host is a template", "c": "root@c", "d": `port "none"`,
	} {
		if got := complete(t, v, name); !strings.Contains(got, want) {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	said := strings.Join(v.Warnings(), "\n")
	for _, want := range []string{"group_vars/all.yml is encrypted", "-A is not used"} {
		if !strings.Contains(said, want) {
			t.Errorf("warnings %q do not say %q", said, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	bomb := "a0: &a0 {hosts: {x: }}\n"
	for i := range 40 {
		bomb += fmt.Sprintf("a%d: &a%d {children: {l%d: *a%d, r%d: *a%d}}\n", i+1, i+1, i, i, i, i)
	}
	chain := "a0: &a0 {vars: }\n"
	for i := range 1000 {
		chain += fmt.Sprintf("a%d: &a%d {<<: *a%d}\n", i+1, i+1, i)
	}
	for name, test := range map[string]struct{ text, want string }{
		"plugin.yml":   {"plugin: amazon.aws.aws_ec2\nregions: [eu]\n", "plugin"},
		"vault.yml":    {"$ANSIBLE_VAULT;1.1;AES256\n61\n", "encrypted"},
		"vault":        {"$ANSIBLE_VAULT;1.1;AES256\n61\n", "encrypted"},
		"list.yml":     {"- a\n- b\n", "want groups"},
		"bomb.yml":     {bomb, "million entries"},
		"circle.yml":   {"a: &a {children: {b: *a}}\n", "inside its own anchor"},
		"circle.ini":   {"[a:children]\nb\n[b:children]\na\n", "below itself"},
		"children.ini": {"[a:children]\nnowhere\n", `no group "nowhere"`},
		"vars.ini":     {"[a:vars]\nx=1\n", `no group "a"`},
		"quote.ini":    {"[a]\nx ansible_user='y\n", "quote"},
		"range.ini":    {"[a]\nx[1:99999999999999]\n", "more than"},
		"ranges.ini":   {"[a]\nx[1:999999]y[1:999999]\n", "more than"},
		"option.ini":   {"[a]\n-oProxyCommand=x\n", "must not begin with -"},
		"shell.ini":    {"[a]\nx$(id)\n", "must not contain"},
		"section.ini":  {"[a:b]\nx\n", "a section is"},
		"blank.ini":    {"[my group]\nx\n", "a section is"},
		"inside.yml":   {"a: &a {<<: *a}\n", "inside its own anchor"},
		"list in.yml":  {"a: &a {hosts: {x: [1, {y: *a}]}}\n", "inside its own anchor"},
		"inside":       {"all: &a {children: {b: {vars: *a}}}\n", "inside its own anchor"},
		"deep.yml":     {"a: " + strings.Repeat("{a: ", 1001) + strings.Repeat("}", 1001) + "\n", "more than 1000 deep"},
		"chain.yml":    {chain + "z: *a1000\n", "more than 1000 deep"},
		"two.yml":      {"web: {hosts: {w1: }}\n---\ndb: {hosts: {d1: }}\n", "second document"},
		"two":          {"web: {hosts: {w1: }}\n---\n", "second document"},
		"hosts.toml":   {"[web.hosts]\nw1 = {}\n", "TOML"},
	} {
		_, err := load(t, filepath.Join(write(t, map[string]string{name: test.text}), name))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}

// Of a key that stands twice the last one counts, as for Ansible, and who reads on is told.
func TestKeysTwice(t *testing.T) {
	dir := write(t, map[string]string{
		"hosts.yml":          "all:\n  children:\n    web:\n      hosts: {w1: }\n    web:\n      hosts: {w2: }\n",
		"group_vars/web.yml": "ansible_port: 1\nansible_port: 2\n",
		"groups.yaml":        "roles: {a: x, b: y, a: z}\n",
	})
	v, err := load(t, filepath.Join(dir, "hosts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if hosts, _ := v.Group("", "web"); !slices.Equal(hosts, []string{"w2"}) || len(v.Hosts()) != 1 {
		t.Errorf("web is %q of %q", hosts, v.Hosts())
	}
	if got := complete(t, v, "w2"); got != "w2=w2:2" {
		t.Errorf("w2 becomes %s", got)
	}
	groups := NewGroupFiles(v.warn)
	if err := groups.Add(filepath.Join(dir, "groups.yaml")); err != nil {
		t.Fatal(err)
	}
	sources := hostset.Sources{}
	groups.Into(sources, sources.Also)
	if got := expandWith(t, "@roles:a", sources); got != "z" {
		t.Errorf("@roles:a is %s", got)
	}
	said := strings.Join(v.Warnings(), "\n")
	for _, want := range []string{`hosts.yml: line 5: "web" occurs a second time`, `web.yml: line 2: "ansible_port"`, `groups.yaml: line 1: "a"`} {
		if !strings.Contains(said, want) {
			t.Errorf("warnings %q do not say %q", said, want)
		}
	}
}

// A list with a comma is an inventory, as for Ansible.
func TestInventoryAsList(t *testing.T) {
	v, err := load(t, " w1 ,w2:2222,[2001:db8::7]:22,, ")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{"w1": "w1", "w2": "w2=w2:2222", "2001:db8::7": "2001:db8::7=[2001:db8::7]:22"} {
		if got := complete(t, v, host); got != want {
			t.Errorf("%s becomes %s, want %s", host, got, want)
		}
	}
	if hosts, err := v.Group("", ungrouped); err != nil || len(hosts) != 3 {
		t.Errorf("%q, %v", hosts, err)
	}
	for _, list := range []string{"w[1:3],", "a b,", "-x,"} {
		if _, err := load(t, list); err == nil {
			t.Errorf("%q is taken", list)
		}
	}
}

// What is wrong with a port is said of the text that the file holds.
func TestWrongPort(t *testing.T) {
	for _, port := range []string{"'0x16'", "'00x16'", "0", "70000"} {
		v, err := load(t, filepath.Join(write(t, map[string]string{"hosts.yml": "all: {hosts: {w1: {ansible_port: " + port + "}}}\n"}), "hosts.yml"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := complete(t, v, "w1"), "port \""+strings.Trim(port, "'")+"\" is not a number"; !strings.Contains(got, want) {
			t.Errorf("%s: %s", port, got)
		}
	}
}

// expandWith evaluates a set with some sources.
func expandWith(t *testing.T, text string, s hostset.Sources) string {
	t.Helper()
	names, err := hostset.Expand(text, hostset.Options{Groups: s})
	if err != nil {
		return "error: " + err.Error()
	}
	return strings.Join(names, " ")
}

func TestGroupFiles(t *testing.T) {
	dir := write(t, map[string]string{
		"local.cfg": "web: w[1-2]\nall: @web,db1\n",
		"roles.yaml": `
roles:
  adm: adm0
  io: [io0, 'io[1-2]']
  both: '@adm,@io'
  far: '@racks:r1'
racks: {r1: 'n[1-2]', "empty": }
`,
		"README": "not a group file",
	})
	files, sources := NewGroupFiles(New().warn), hostset.Sources{}
	if err := files.Add(dir); err != nil {
		t.Fatal(err)
	}
	files.Into(sources, sources.Also)
	for set, want := range map[string]string{
		"@web":        "w1 w2",
		"@all":        "w1 w2 db1",
		"@roles:io":   "io0 io1 io2",
		"@roles:both": "adm0 io0 io1 io2",
		"@roles:far":  "n1 n2",
		"@racks:*":    "n1 n2",
		"@adm":        `error: group "adm" is not in`,
		"@roles:web":  `error: group "web" is not in`,
	} {
		if got := expandWith(t, set, sources); got != want && !(strings.HasPrefix(want, "error") && strings.HasPrefix(got, want)) {
			t.Errorf("%s is %q, want %q", set, got, want)
		}
	}
	if err := files.Add(filepath.Join(write(t, map[string]string{"x.yaml": "a: [1]\n"}), "x.yaml")); err == nil {
		t.Error("a list was taken for a source")
	}
}

func TestGroupsCommand(t *testing.T) {
	s := hostset.Sources{}
	s.Also("", NewCommand(t.Context(), `case $GROUP in web) echo 'w[1-2]'; echo w9;; "") echo web all;; all) echo @web,x;; bad) echo no such >&2; exit 3;; esac`))
	for set, want := range map[string]string{
		"@web":                     "w1 w2 w9",
		"@all":                     "w1 w2 w9 x",
		"@*":                       "w1 w2 w9 x",
		"@nowhere":                 "error: group \"nowhere\" is not in the answer of --groups-command, which has: all web",
		"@bad":                     "error: --groups-command for group \"bad\": exit status 3: no such",
		"@web;touch${IFS}/tmp/ran": "error: group \"web;touch${IFS}/tmp/ran\" is not in the answer of --groups-command, which has: all web",
	} {
		if got := expandWith(t, set, s); got != want {
			t.Errorf("%s is %q, want %q", set, got, want)
		}
	}
}

// Sets of groups that several sources have add up.
func TestSourcesAddUp(t *testing.T) {
	v, err := load(t, filepath.Join(write(t, map[string]string{"site.ini": site}), "site.ini"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := hostset.ReadGroups(strings.NewReader("web: w9\nown: x\n"), "groups")
	if err != nil {
		t.Fatal(err)
	}
	s := hostset.Sources{}
	s.Also("", g)
	s.Also("", v)
	for set, want := range map[string]string{
		"@web": "w9 w1 w2 w3", "@own": "x", "@ungrouped": "mail", "@all": "mail w1 w2 w3", "@web!w2": "w9 w1 w3", "@*!@web": "mail x",
	} {
		got := strings.Fields(expandWith(t, set, s))
		wanted := strings.Fields(want)
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s is %q, want %q", set, got, wanted)
		}
	}
}

// What ansible-inventory --list writes is read as the inventory that it read.
func TestReadsWhatAnsibleInventoryWrites(t *testing.T) {
	dir := write(t, map[string]string{
		"hosts.ini":           "alone ansible_port=2022\n[web]\nw[1:3] ansible_user=deploy\nw4\n[eu:children]\nweb\n[eu:vars]\nansible_host=192.0.2.7\n",
		"group_vars/web.yml":  "ansible_port: 2222\n",
		"host_vars/w4/a.json": `{"ansible_user": "ann", "facts": {"a": [1, {"b": null}]}}`,
	})
	for name, flags := range map[string][]string{"list.json": nil, "list": {"--export"}} {
		out, err := exec.Command("ansible-inventory", append(flags, "--list", "-i", filepath.Join(dir, "hosts.ini"))...).Output()
		if err != nil {
			t.Fatalf("%v: install the package ansible-core", err)
		}
		v, err := load(t, filepath.Join(write(t, map[string]string{name: string(out)}), name))
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range map[string]string{"alone": "alone=alone:2022", "w2": "w2=deploy@192.0.2.7:2222", "w4": "w4=ann@192.0.2.7:2222"} {
			if got := complete(t, v, host); got != want {
				t.Errorf("%s: %s becomes %s, want %s", name, host, got, want)
			}
		}
		for group, want := range map[string]string{"all": "alone w1 w2 w3 w4", "ungrouped": "alone", "eu": "w1 w2 w3 w4", "web": "w1 w2 w3 w4"} {
			hosts, err := v.Group("", group)
			slices.Sort(hosts)
			if got := strings.Join(hosts, " "); got != want || err != nil {
				t.Errorf("%s: group %s is %s, %v, want %s", name, group, got, err, want)
			}
		}
	}
}

// Programs write groups as lists of hosts, too, and names there are no patterns.
func TestListingsOfPrograms(t *testing.T) {
	v, err := load(t, filepath.Join(write(t, map[string]string{"x.json": `{"web": ["a", "b"], "eu": {"children": ["web"], "vars": {"ansible_user": "ann"}}, "_meta": {"hostvars": {"a": {"ansible_port": 22}, "nobody": {}}}}`}), "x.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := complete(t, v, "a"), "a=ann@a:22"; got != want || len(v.Hosts()) != 2 {
		t.Errorf("a becomes %s of %q, want %s", got, v.Hosts(), want)
	}
	for _, text := range []string{`{"web": ["a[1:2]"], "_meta": {}}`, `{"web": {"hosts": {"a": 1}}, "_meta": {}}`, `{"web": [["a"]], "_meta": {}}`, `{"a": {"children": ["a"]}, "_meta": {}}`} {
		if _, err := load(t, filepath.Join(write(t, map[string]string{"x.json": text}), "x.json")); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// No name of a host or group leads to a file outside of its directory.
func TestNamesStayInTheirDirectories(t *testing.T) {
	dir := write(t, map[string]string{
		"site/hosts":          "..\nx/y\n[web/../..]\nw1\n[.]\nw2\n[web/../../group_vars/other]\nw3\n",
		"site/secret.yml":     "ansible_user: outside\n",
		"site/host_vars/x/y":  "ansible_user: inside\n",
		"site/group_vars/all": "ansible_user: all\n",
		"secret.yml":          "ansible_user: outside\n",
	})
	v, err := load(t, filepath.Join(dir, "site/hosts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"..", "w1", "w2", "w3"} {
		known, err := v.effective(name)
		if got := known["ansible_user"].text; err != nil || got != "all" {
			t.Errorf("%s has the user %q, %v", name, got, err)
		}
	}
}

// A mark that editors of Windows put before a text is not part of a name.
func TestByteOrderMark(t *testing.T) {
	for name, text := range map[string]string{"hosts": "\ufeff[web]\nw1\n", "hosts.yml": "\ufeffweb: {hosts: {w1: }}\n", "list.json": "\ufeff" + `{"web": ["w1"], "_meta": {}}`} {
		v, err := load(t, filepath.Join(write(t, map[string]string{name: text}), name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if hosts, err := v.Group("", "web"); err != nil || !slices.Equal(hosts, []string{"w1"}) {
			t.Errorf("%s: %q, %v", name, hosts, err)
		}
	}
}

// Files that PowerShell's > has saved are said to be UTF-16, whoever reads them.
func TestWideFiles(t *testing.T) {
	for _, name := range []string{"hosts", "hosts.yml", "list.json", "local.cfg", "roles.yaml"} {
		path := filepath.Join(write(t, map[string]string{name: "\xff\xfew\x001\x00\n\x00"}), name)
		_, inventory := load(t, path)
		for kind, err := range map[string]error{"inventory": inventory, "groups": NewGroupFiles(New().warn).Add(path)} {
			if err == nil || !strings.Contains(err.Error(), name+" is saved as UTF-16") || !strings.Contains(fault.HintOf(err), "iconv") {
				t.Errorf("%s as %s: %v", name, kind, err)
			}
		}
	}
}
