package route

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"strings"
)

// databases maps an AddressFamily of ssh_config(5) to a database of getent(1).
var databases = map[string]string{"inet": "ahostsv4", "inet6": "ahostsv6"}

// canonical returns the C library's canonical name for a name with an address of family, as ssh
// asks for it (ssh.c, resolve_host). getent(1) gives its answer: Go's resolver follows one step of
// a chain, whichever answer comes first, and finds a name with a dot at its end in /etc/hosts,
// where the C library does not. Without getent Go's resolver is used.
func canonical(ctx context.Context, family, name string) (string, bool) {
	out, err := exec.CommandContext(ctx, "getent", "--no-addrconfig", cmp.Or(databases[family], "ahosts"), "--", name).Output()
	const unknown = 2 // the exit status for a name that does not exist
	if exit, ran := errors.AsType[*exec.ExitError](err); err != nil && (!ran || exit.ExitCode() != unknown) {
		return followed(ctx, family, name)
	}
	for line := bufio.NewScanner(bytes.NewReader(out)); line.Scan(); {
		if fields := strings.Fields(line.Text()); len(fields) >= 3 { // the first line has it
			// getent, unlike ssh, maps IPv4 addresses where there are no others.
			if address, err := netip.ParseAddr(fields[0]); err != nil || address.Is4In6() {
				break
			}
			return fields[2], true
		}
	}
	return "", false
}

// networks maps the families to the terms of package net.
var networks = map[string]string{"inet": "ip4", "inet6": "ip6"}

// followed follows the aliases of a name by Go's resolver until it stays the same; false if it has
// no address.
func followed(ctx context.Context, family, name string) (string, bool) {
	if _, err := net.DefaultResolver.LookupNetIP(ctx, cmp.Or(networks[family], "ip"), name); err != nil {
		return "", false
	}
	const longest = 16
	for range longest {
		next, err := net.DefaultResolver.LookupCNAME(ctx, name)
		if err != nil {
			return "", false
		}
		if next == name {
			break
		}
		name = next
	}
	return name, true
}
