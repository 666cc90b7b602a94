package hostlist

import (
	"bytes"
	"context"
	"io"

	"sshpace/internal/base/pattern"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/bounded"
)

// ReadFile reads a list of hosts; "-" is standard input.
func ReadFile(ctx context.Context, stdin io.Reader, name string) (*hostset.HostsFile, error) {
	var text []byte
	var err error
	if name == Stdin {
		name = "standard input"
		text, err = readInput(ctx, stdin)
	} else {
		text, err = bounded.ReadFile(name, bounded.List)
	}
	if err != nil {
		return nil, err
	}
	return hostset.ReadHosts(bytes.NewReader(bracketed().ReplaceAll(text, []byte("$1$2:$3"))), name)
}

// bracketed is a host as it stands in known_hosts, [name]:port, which a host set
// would take for a range of numbers.
var bracketed = pattern.Lazy(`(?m)^([ \t]*(?:[^\s@]+@)?)\[([^\[\]:\s]*[^\[\]:\s0-9,/-][^\[\]:\s]*)\]:([0-9]+)`)

// readInput reads all of r, or gives up when ctx ends: someone at a terminal may
// press Ctrl-C instead of Ctrl-D.
func readInput(ctx context.Context, r io.Reader) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := bounded.ReadAll(r, "standard input", bounded.List)
		done <- result{text, err}
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
