package hostlist

import (
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/fleet/hostset"
)

// Of the words for ssh those count that say how a host is reached, in the order in which Ansible
// gives them to ssh; the others are named.
func TestArguments(t *testing.T) {
	v, err := load(t, filepath.Join(write(t, map[string]string{"hosts.yml": `
all:
  hosts:
    keys: {ansible_ssh_private_key_file: ~/a key, ansible_ssh_args: -i first -C -o ControlMaster=auto -o ControlPersist=60s, ansible_ssh_extra_args: -i last}
    port: {ansible_port: 23, ansible_ssh_args: -Cp 22 -l ann, ansible_ssh_common_args: -p 24 -l bob, ansible_user: eve}
    late: {ansible_ssh_common_args: -p24 -o User=bob -o "Port 25"}
    jump: {ansible_ssh_common_args: "-J 'bob@gate:2222,inner'"}
    way: {ansible_ssh_common_args: '-o ProxyCommand="ssh -q -p 2222 -W %h:%p bob@gate" -o StrictHostKeyChecking=no'}
    time: {ansible_ssh_extra_args: -4 -o connecttimeout=7 -o "ServerAliveInterval 5"}
    direct: {ansible_ssh_extra_args: -o ProxyCommand=none}
    both: {ansible_ssh_common_args: -J one -o ProxyJump=two}
    lax: {ansible_ssh_common_args: -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -A -L 1:x:1 -D 7 -o PermitLocalCommand=yes -o LocalCommand=id -o PKCS11Provider=/tmp/x.so}
    program: {ansible_ssh_executable: /tmp/ssh}
    spaced: {ansible_ssh_common_args: "  "}
`}), "hosts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"keys": `keys IdentityFile=first IdentityFile="~/a key" IdentityFile=last`, "port": "port=ann@port:22", "late": "late=bob@late:24",
		"jump": "jump ProxyJump=bob@gate:2222,inner", "way": "way ProxyJump=bob@gate:2222", "direct": "direct ProxyJump=none",
		"time": "time AddressFamily=inet ConnectTimeout=7 ServerAliveInterval=5", "both": "both ProxyJump=one ProxyJump=two", "lax": "lax",
		"program": "program", "spaced": "spaced",
		"root@jump=jump:22": "root@jump=jump:22 ProxyJump=bob@gate:2222,inner", "jump=192.0.2.1": "jump=192.0.2.1",
	} {
		if got := complete(t, v, name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	said := strings.Join(v.Warnings(), "\n")
	for _, word := range []string{
		"-o StrictHostKeyChecking=no", "-o UserKnownHostsFile=/dev/null", "-A", "-L 1:x:1", "-D 7", "-o PermitLocalCommand=yes", "-o LocalCommand=id",
		"-o PKCS11Provider=/tmp/x.so", "ansible_ssh_executable",
	} {
		if !strings.Contains(said, word+" is not used from an inventory") {
			t.Errorf("warnings %q do not name %s", said, word)
		}
	}
	if strings.Contains(said, "Control") || strings.Contains(said, "-C") {
		t.Errorf("warnings about what changes nothing: %q", said)
	}
}

// Words that would lead elsewhere, or run a program here, stop the host that has them.
func TestRefusedArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-o ProxyCommand='nc %h %p'":               `the ProxyCommand "nc %h %p" is not run`,
		"-o ProxyCommand='ssh -W %h:%p g; id'":     "is not run",
		"-o ProxyCommand='ssh -W other:22 g'":      "is not run",
		"-o ProxyCommand='ssh -i k -W %h:%p g'":    "cannot have IdentityFile=k here",
		"-o ProxyCommand='ssh -F c -W %h:%p g'":    "-F c cannot count",
		"-o ProxyCommand=\"ssh -W %h:%p '-oX=y'\"": "\"X=y\" is not a setting",
		"-F other":                "-F other cannot count",
		"-o HostName=x":           "leads elsewhere",
		"-o Nonsense=1":           `"Nonsense=1" is not a setting`,
		"-J":                      "-J needs a value",
		"-J '$(id)'":              "jump",
		"-J -oProxyCommand=id":    "-oProxyCommand=id",
		"id":                      `"id" is not an option`,
		"-o 'User=-x'":            "must not begin with -",
		"-o 'Port=x'":             "is not a number",
		"-W x:22":                 "-W x:22 leads elsewhere",
		"-l":                      "-l needs a value",
		`-i "a\nProxyCommand=id"`: "control character",
		"-i 'x":                   "quot",
	} {
		text := "all: {hosts: {h: {ansible_ssh_common_args: '" + strings.ReplaceAll(args, "'", "''") + "'}}}"
		if strings.Contains(args, `\n`) {
			text = `all: {hosts: {h: {ansible_ssh_common_args: "-i 'a\nProxyCommand=id'"}}}`
		}
		v, err := load(t, filepath.Join(write(t, map[string]string{"hosts.yml": text}), "hosts.yml"))
		if err != nil {
			t.Fatal(err)
		}
		if got := complete(t, v, "h"); !strings.Contains(got, "error: h in") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want an error with %q", args, got, want)
		}
	}
}

// A user or a port that is given needs no variable, and a key that only Ansible can name is not
// used.
func TestUnreadableArguments(t *testing.T) {
	v, err := load(t, filepath.Join(write(t, map[string]string{"list.json": `{"all": {"hosts": ["h", "u"]}, "_meta": {"hostvars": {
"h": {"ansible_user": "{{ x }}", "ansible_port": {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256 61"}, "ansible_private_key_file": "{{ x }}/key"},
"u": {"ansible_host": {"__ansible_unsafe": "192.0.2.1"}}}}}`}), "list.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"root@h:22": "root@h:22", "h:22": "error: h in", "root@h": "ansible_port is encrypted with ansible-vault", "u": "u=192.0.2.1",
	} {
		if got := complete(t, v, name); got != want && !(strings.Contains(got, "error") && strings.Contains(got, want)) {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	if said := strings.Join(v.Warnings(), "\n"); !strings.Contains(said, "ansible_private_key_file is a template") {
		t.Errorf("warnings %q", said)
	}
}

// A name without a user leaves out the host of every user, whatever an inventory adds to it.
func TestExcludedByName(t *testing.T) {
	v, err := load(t, filepath.Join(write(t, map[string]string{"hosts": "w1 ansible_host=192.0.2.1\nw2 ansible_ssh_common_args='-J gate'\nw3\n"}), "hosts"))
	if err != nil {
		t.Fatal(err)
	}
	sel := hostset.Selection{Sets: []string{"root@w[1-3]", "w[1-3]"}, Exclude: []string{"w[1-2]"}, Options: hostset.Options{Complete: v.Complete}}
	if hosts, err := sel.Hosts(); err != nil || len(hosts) != 2 {
		t.Errorf("%v, %v", hosts, err)
	}
}

// Hosts that are not reached by ssh are left out of every set, and named once.
func TestOtherConnections(t *testing.T) {
	dir := write(t, map[string]string{"hosts": `localhost ansible_connection=local
[web]
w1 ansible_connection=ssh
w[2:4]
[win]
win[1:3] ansible_connection=winrm
p ansible_connection=ansible.builtin.paramiko_ssh
`, "group_vars/web": "ansible_connection: smart\n"})
	v, err := load(t, filepath.Join(dir, "hosts"))
	if err != nil {
		t.Fatal(err)
	}
	sources := hostset.Sources{}
	sources.Also("", v)
	for _, complete := range []func(*Inventory) hostset.Options{
		func(v *Inventory) hostset.Options { return hostset.Options{Groups: sources, Complete: v.Complete} },
		func(v *Inventory) hostset.Options { return hostset.Options{Groups: sources, Complete: v.Named} },
	} {
		v.others = map[string][]string{}
		sel := hostset.Selection{Sets: []string{"@all", "win2"}, Exclude: []string{"win3"}, Options: complete(v)}
		hosts, err := sel.Hosts()
		if err != nil || len(hosts) != 5 {
			t.Errorf("%v, %v", hosts, err)
		}
		want := "left out, as ansible_connection is local and not ssh: localhost\nleft out, as ansible_connection is winrm and not ssh: win[1-3]"
		if said := strings.Join(v.Warnings(), "\n"); said != want {
			t.Errorf("warnings %q, want %q", said, want)
		}
	}
}
