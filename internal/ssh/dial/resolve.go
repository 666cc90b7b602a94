package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
)

// names turns host names into addresses: each name once per run, and not more look-ups at once than
// name servers and the C library can handle.
type names struct {
	lookup func(ctx context.Context, network, name string) ([]netip.Addr, error)
	limit  chan struct{}
	asked  atomic.Int64 // look-ups without an answer yet

	mu    sync.Mutex
	known map[nameKey]*sched.Together[found]
}

// found is the answer to a look-up, and how long that took, without the wait for others; 0 for an
// address.
type found struct {
	addrs []netip.Addr
	took  time.Duration
}

type nameKey struct {
	name   string
	family Family
}

const (
	maxLookups    = 64 // each asks for two kinds of addresses; dnsmasq takes 150 questions at once and leaves more without an answer
	lookupTimeout = 10 * time.Second
)

func newNames(lookup func(ctx context.Context, network, name string) ([]netip.Addr, error)) *names {
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	return &names{lookup: lookup, limit: make(chan struct{}, maxLookups), known: make(map[nameKey]*sched.Together[found])}
}

var networkOf = map[Family]string{anyFamily: "ip", IPv4: "ip4", IPv6: "ip6"}

// errFamily is an address of the other family than AddressFamily allows.
var errFamily = errors.New("address family for hostname not supported")

// find returns the addresses of name, which may be one itself, in the order that the system's
// resolver gave.
func (n *names) find(ctx context.Context, name string, family Family) (found, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		if family == IPv4 && !a.Unmap().Is4() || family == IPv6 && a.Is4() {
			return found{}, errFamily
		}
		return found{addrs: []netip.Addr{a}}, nil
	}
	key := nameKey{name, family}
	n.mu.Lock()
	asked := n.known[key]
	if asked == nil {
		asked = &sched.Together[found]{Find: func(ctx context.Context) (found, error) { return n.ask(ctx, key) }}
		n.known[key] = asked
	}
	n.mu.Unlock()
	return asked.Get(ctx)
}

// ask looks one name up.
func (n *names) ask(ctx context.Context, key nameKey) (found, error) {
	n.asked.Add(1)
	defer n.asked.Add(-1)
	n.limit <- struct{}{}
	defer func() { <-n.limit }()
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	began := time.Now()
	addrs, err := n.lookup(ctx, networkOf[key.family], key.name)
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	if err != nil { // a later host may have more luck
		n.mu.Lock()
		delete(n.known, key)
		n.mu.Unlock()
	}
	return found{addrs, time.Since(began)}, err
}

// nameError classifies a failed look-up; worded as getaddrinfo(3) does.
func nameError(ctx context.Context, name string, err error) *Error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout) {
		return interrupted(ctx)
	}
	text := "Temporary failure in name resolution"
	hint := "the name server did not answer; try again or give an address"
	var dns *net.DNSError
	if errors.Is(err, errFamily) {
		text, hint = "Address family for hostname not supported", "AddressFamily, or -4 or -6, does not allow this address"
	}
	if errors.As(err, &dns) && dns.IsNotFound {
		text, hint = "Name or service not known", host.Unknown(name)+", or give the address with HostName in ssh_config"
	}
	return &Error{Class: fleet.NameFailed, Text: "Could not resolve hostname " + name + ": " + text, Hint: hint, Err: err}
}
