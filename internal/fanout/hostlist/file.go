package hostlist

import (
	"bytes"
	"context"
	"io"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/file"
)

// ReadFile reads a list of hosts; "-" is standard input.
func ReadFile(ctx context.Context, stdin io.Reader, name string) (*hostset.HostsFile, error) {
	if name == Stdin {
		return readInput(ctx, stdin, hostset.ReadHosts)
	}
	text, err := file.ReadFile(name, file.List)
	if err != nil {
		return nil, err
	}
	return parse(text, name, hostset.ReadHosts)
}

// reader parses a text into a list of hosts.
type reader func(r io.Reader, name string) (*hostset.HostsFile, error)

func parse(text []byte, name string, read reader) (*hostset.HostsFile, error) {
	if err := file.Wide(text, name); err != nil {
		return nil, err
	}
	return read(bytes.NewReader(bracketed().ReplaceAll(text, []byte("$1$2:$3"))), name)
}

// input is the name of standard input in messages.
const input = "standard input"

// bracketed matches a host in the form of known_hosts, [name]:port, whose brackets would mean a
// range of numbers in a host set.
var bracketed = wildcard.Regexp(`(?m)^([ \t]*(?:[^\s@]+@)?)\[([^\[\]:\s]*[^\[\]:\s0-9,/-][^\[\]:\s]*)\]:([0-9]+)`)

// readInput parses all of standard input, or gives up when ctx ends: someone at a terminal may
// press Ctrl-C instead of Ctrl-D.
func readInput(ctx context.Context, r io.Reader, read reader) (*hostset.HostsFile, error) {
	text, err := sched.Await(ctx, func() ([]byte, error) { return file.ReadAll(r, input, file.List) })
	if err != nil {
		return nil, err
	}
	return parse(text, input, read)
}
