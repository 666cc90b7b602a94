//go:build linux

package main

import (
	"fmt"
	"strings"
)

// copyTools are all that copy, ourselves first.
func (l lab) copyTools(sshpace string, fanout int) []tool {
	many, source := fmt.Sprint(fanout), l.Path("source")
	list := func(hosts []string) string { return strings.Join(hosts, ",") }
	ours := func(flags ...string) func(config, _ string, hosts []string) []string {
		return func(config, _ string, hosts []string) []string {
			argv := append([]string{sshpace, "copy", "-q", "--no-record", "-F", config, "-f", many, "-w", list(hosts)}, flags...)
			return append(argv, source, ":got")
		}
	}
	scp := func(program ...string) func(config, _ string, hosts []string) []string {
		return func(config, _ string, hosts []string) []string {
			return append(program, "-r", "-p", many, "-x", "-F "+config, "-H", strings.Join(hosts, " "), source, "got")
		}
	}
	return []tool{
		{name: "sshpace copy", needs: []string{sshpace}, command: ours()},
		{name: "sshpace copy --no-verify", needs: []string{sshpace}, command: ours("--no-verify")},
		{name: "sshpace compat pscp", needs: []string{sshpace}, command: scp(sshpace, "compat", "pscp")},
		{name: "clush --copy", needs: []string{"clush"}, command: func(config, _ string, hosts []string) []string {
			return []string{"clush", "-S", "-q", "-f", many, "-o", "-F " + config, "-w", list(hosts), "--copy", source, "--dest", "got"}
		}},
		{name: "pscp", needs: []string{"parallel-scp"}, command: scp("parallel-scp")},
		{name: "ansible -m copy", needs: []string{"ansible"}, command: func(config, _ string, hosts []string) []string {
			return l.ansible(config, many, hosts, "copy", "src="+source+" dest=got")
		}},
	}
}
