package route

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"time"

	"sshpace/internal/ssh/conf"
)

// attempts is how many times as long as one address a login may take as a whole: a dead one before
// it, and the login.
const attempts = 3

// Waits returns the timeouts of a connection to a host. each is for one address, like ssh's
// ConnectTimeout, and all for all of them and the login: the value of a flag, which is divided,
// otherwise the configured one, otherwise usual.
func (p Params) Waits(ctx context.Context, w *Route, usual time.Duration) (each, all time.Duration) {
	if own := w.Host.Duration(conf.ConnectTimeout); p.ConnectTimeout == 0 && own > 0 {
		return own, max(usual, attempts*own)
	}
	all = cmp.Or(p.ConnectTimeout, usual)
	return w.Share(ctx, all), all
}

// Share returns the part of a time for each address of the host, so that a dead one leaves some for
// the others.
func (w *Route) Share(ctx context.Context, all time.Duration) time.Duration {
	if all <= 0 || w.Host == nil || len(w.Jumps) > 0 || w.Host.Word(conf.ProxyCommand) != "" {
		return all // others connect
	}
	if _, err := netip.ParseAddr(w.Host.HostName()); err == nil {
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, all)
	defer cancel()
	network := map[string]string{"inet": "ip4", "inet6": "ip6"}[w.Host.Word(conf.AddressFamily)]
	found, _ := net.DefaultResolver.LookupNetIP(ctx, cmp.Or(network, "ip"), w.Host.HostName()) // ssh reports errors about a name
	return all / time.Duration(max(1, len(found)))
}
