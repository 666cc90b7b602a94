package route

import (
	"context"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts"
)

// LookedUp is a host with the name that ssh looks up for it.
type LookedUp struct {
	host.Host        // HostName and Port, or the HostKeyAlias alone
	Typed     string // the word that the user types after ssh
	Alias     bool   // Name is a HostKeyAlias
}

// KnownNames returns hosts in the form of a known_hosts file.
func KnownNames(hosts []LookedUp) []string {
	names := make([]string, 0, len(hosts))
	for _, h := range hosts {
		names = append(names, knownhosts.HostPort(h.Name, int(h.Port)))
	}
	return names
}

// LookUp turns typed hosts into the names that ssh looks up.
func (c *Configuration) LookUp(ctx context.Context, named []host.Host) ([]LookedUp, error) {
	hosts := make([]LookedUp, 0, len(named))
	for _, h := range named {
		r, err := c.Asker.Resolve(ctx, h.Asked())
		if err != nil {
			return nil, ResolveError(err, h.Name)
		}
		found := LookedUp{Host: host.Host{Name: r.HostName(), Port: uint16(r.Port()), Origin: h.Origin}, Typed: h.Name}
		if alias := r.Word(conf.HostKeyAlias); alias != "" {
			found = LookedUp{Host: host.Host{Name: alias, Origin: h.Origin}, Typed: h.Name, Alias: true}
		}
		hosts = append(hosts, found)
	}
	return hosts, nil
}

// Hosts returns the hosts without the typed words; nil stays nil.
func Hosts(hosts []LookedUp) []host.Host {
	var plain []host.Host
	for _, h := range hosts {
		plain = append(plain, h.Host)
	}
	return plain
}

// Aliases maps typed words to their HostKeyAlias.
func Aliases(hosts []LookedUp) map[string]string {
	aliases := make(map[string]string)
	for _, h := range hosts {
		if h.Alias {
			aliases[h.Typed] = h.Name
		}
	}
	return aliases
}

// KnownName returns the name that ssh looks up in known_hosts files for a typed host, with the port
// of the flags; a name in the form of the file, [NAME]:PORT, stays.
func KnownName(ctx context.Context, p Params, typed string) (string, error) {
	asTyped := func(name string) string {
		if strings.EqualFold(name, typed) {
			return typed
		}
		return name
	}
	h, err := host.Parse(typed)
	if err != nil || strings.HasPrefix(typed, "[") {
		return asTyped(knownhosts.HostPort(typed, int(p.Flags.Port))), nil
	}
	router, err := New(ctx, p)
	if err != nil {
		return "", err
	}
	config, err := router.Configuration(ctx)
	if err != nil {
		return "", err
	}
	found, err := config.LookUp(ctx, []host.Host{h})
	if err != nil {
		return "", err
	}
	return asTyped(KnownNames(found)[0]), nil
}
