//go:build linux

package main

import "strings"

// ansible runs one module on the hosts. Its own ControlPersist is left out, and so is
// its compression: connections would be warm from the second round on, the other tools'
// are not.
func (l *lab) ansible(config, many string, hosts []string, module, args string) []string {
	return []string{"env", "ANSIBLE_SSH_ARGS=-F " + config, "ANSIBLE_LOCAL_TEMP=" + l.path("ansible"), "ANSIBLE_CONFIG=" + l.path("ansible.cfg"),
		"ansible", "-i", strings.Join(hosts, ",") + ",", "-f", many, "-m", module, "-a", args, "all"}
}
