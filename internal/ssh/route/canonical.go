package route

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
)

// canonical is the name that the C library calls canonical for a name, as ssh
// asks it (ssh.c, resolve_host). getent(1) is its voice: Go's resolver follows
// one step of a chain, whichever answer comes first, and finds a name with a dot
// at its end in /etc/hosts, where the C library does not. Without getent Go's
// resolver has to do.
func canonical(ctx context.Context, name string) (string, bool) {
	out, err := exec.CommandContext(ctx, "getent", "ahosts", "--", name).Output()
	const unknown = 2 // the exit status for a name that does not exist
	if exit, ran := errors.AsType[*exec.ExitError](err); err != nil && (!ran || exit.ExitCode() != unknown) {
		return followed(ctx, name)
	}
	for line := bufio.NewScanner(bytes.NewReader(out)); line.Scan(); {
		if fields := strings.Fields(line.Text()); len(fields) >= 3 { // the first line has it
			return fields[2], true
		}
	}
	return "", false
}

// followed asks Go's resolver until the name stays the same.
func followed(ctx context.Context, name string) (string, bool) {
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
