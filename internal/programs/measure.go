//go:build linux

package programs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/relay"
)

// Params select the implementations to measure.
type Params struct {
	Only    []string     // CLIENT:SERVER, names of makers or patterns; none: all
	SSH     []Build      // besides the installed ones
	SSHD    []Build      // besides the installed ones
	Ciphers []string     // each pair with each of them; none: with the probably fastest one
	MAC     string       // for ciphers that need one; "": the fastest
	AES     bool         // the machine has instructions for AES
	Random  bool         // the payload
	Paths   []relay.Path // before each server; none: no relay
	Turns   transfer.Turns
}

// Build is a user's OpenSSH program.
type Build struct {
	Name string // that the user calls it by; "": as its version has it
	Path string
}

// Named reads NAME=PATH, of an ssh or an sshd.
func Named(text string) (b Build, server bool, err error) {
	name, path, ok := strings.Cut(text, "=")
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(":,*?[\\", r) }
	if !ok || path == "" || name == "" || strings.ContainsFunc(name, odd) {
		return b, false, fault.Usage("such as --name new=/opt/openssh/bin/ssh", "--name %q: want a name of one word, without colons, and the path of an ssh or sshd", text)
	}
	return Build{name, path}, strings.Contains(filepath.Base(path), "sshd"), nil
}

// unlike distinguishes programs of one name by their paths.
func unlike[P any](all []P, of func(*P) (name *string, path string)) {
	count := map[string]int{}
	for i := range all {
		name, _ := of(&all[i])
		count[*name]++
	}
	for i := range all {
		if name, path := of(&all[i]); count[*name] > 1 {
			*name += " " + path
		}
	}
}

// given reports whether a program is one of the user's builds already.
func given(builds []Build, path string) bool {
	own, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(builds, func(b Build) bool {
		other, err := os.Stat(b.Path)
		return err == nil && os.SameFile(own, other)
	})
}

// makers returns the names that Only knows.
func makers() (clients, servers []string) {
	for _, row := range opensshClients {
		clients = append(clients, row.maker)
	}
	for _, row := range clientRows {
		clients = append(clients, row.maker)
	}
	for _, row := range serverRows {
		servers = append(servers, row.maker)
	}
	return append(clients, native), servers
}

// chosen reports whether a client and a server are measured together, by their makers or names.
func (p Params) chosen(c Client, s Server) bool {
	if len(p.Only) == 0 {
		return true
	}
	return slices.ContainsFunc(p.Only, func(only string) bool {
		client, server, both := strings.Cut(only, ":")
		if !both {
			server = "*"
		}
		matches := func(pattern string, names ...string) bool {
			return slices.ContainsFunc(names, func(name string) bool { ok, _ := path.Match(pattern, name); return ok })
		}
		return matches(client, c.Maker, c.Name) && matches(server, s.Maker, s.Name)
	})
}

// named reports whether the user asked for the maker of a server by its name, not by a pattern.
func (p Params) named(server string) bool {
	return slices.ContainsFunc(p.Only, func(only string) bool { return strings.HasSuffix(only, ":"+server) })
}

// ErrNoPair says that nothing of the selection can be paired.
var ErrNoPair = errors.New("none of the pairs has an installed client and server")

// Measure finds the installed programs, pairs them, measures every pair in turns and records the
// results.
func (b *Setup) Measure(ctx, drain context.Context, p Params, sink record.Sink) (err error) {
	if b.Keys, err = loopback.MakeKeys(b.Dir); err != nil {
		return err
	}
	clients, noClient := b.clients(ctx, p.SSH)
	servers, noServer := b.servers(ctx, p.SSHD)
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.Close())
		}
	}()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for side, absent := range map[string]map[string]error{"client": noClient, "server": noServer} {
		for _, maker := range slices.Sorted(maps.Keys(absent)) {
			if err := sink(&record.Finding{What: side + " " + maker + " skipped", Why: absent[maker].Error()}); err != nil {
				return err
			}
		}
	}
	files := &transfer.Files{Directory: b.Dir.Path, Random: p.Random}
	defer files.Remove()
	var relays relay.Group
	defer relays.Close()
	endpoints, err := endpointsOf(servers, p.Paths, &relays)
	if err != nil {
		return err
	}
	pairs := b.pairs(ctx, clients, endpoints, p, files)
	if len(pairs) == 0 {
		return fault.WithHint(ErrNoPair, cmp.Or(missing(noClient, noServer), "list them: sshpace programs"))
	}
	return p.Turns.Measure(ctx, drain, pairs, sink)
}

// missing lists the programs that are not here.
func missing(sides ...map[string]error) string {
	var reasons []string
	for _, side := range sides {
		for _, maker := range slices.Sorted(maps.Keys(side)) {
			if reason := side[maker].Error(); !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	return strings.Join(reasons, "; ")
}

// pairs returns the pairs to measure, with each cipher.
func (b *Setup) pairs(ctx context.Context, clients []Client, servers []endpoint, p Params, files *transfer.Files) []*transfer.Subject {
	wanted := []alg.Suite{{}}
	if len(p.Ciphers) > 0 {
		wanted = nil
	}
	for _, cipher := range p.Ciphers {
		wanted = append(wanted, alg.Suite{Cipher: cipher, MAC: p.MAC})
	}
	var all []*transfer.Subject
	for _, want := range wanted {
		for _, c := range clients {
			for _, s := range servers {
				if !p.chosen(c, s.server) || ctx.Err() != nil {
					continue
				}
				if s.server.Maker == oldCipherServer && !p.named(oldCipherServer) && !slices.Contains(s.server.Offer.Ciphers, want.Cipher) {
					continue // it has only broken or weak algorithms
				}
				method := b.pair(ctx, c, s, want, p.AES, files)
				all = append(all, method)
			}
		}
	}
	return all
}

// endpoint is a server and the path to it.
type endpoint struct {
	server     Server
	path       relay.Path
	host, port string
}

// endpointsOf returns all paths to all servers.
func endpointsOf(servers []Server, paths []relay.Path, relays *relay.Group) (all []endpoint, err error) {
	if len(paths) == 0 {
		paths = []relay.Path{{}}
	}
	for _, s := range servers {
		for _, path := range paths {
			host, own := s.Address()
			port, err := relays.Before(host, own, path)
			if err != nil {
				return nil, err
			}
			all = append(all, endpoint{s, path, host, port})
		}
	}
	return all, nil
}

// nothingCommon lists the names of a kind that the server has.
func nothingCommon(kind alg.Kind, server alg.Offer) error {
	return fmt.Errorf("no %s in common: the server has %s", kind, strings.Join(server.List(kind), ", "))
}
