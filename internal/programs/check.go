//go:build linux

package programs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/text"
	"sshpace/internal/ssh/openssh"
)

// Usable refuses an ssh or sshd of the user that does not identify itself.
func Usable(ctx context.Context, ssh, sshd []Build) error {
	for _, side := range []struct {
		program string
		builds  []Build
		find    func(context.Context, string) (openssh.Program, error)
	}{{"ssh", ssh, openssh.FindClient}, {"sshd", sshd, openssh.FindServer}} {
		for _, build := range side.builds {
			if _, err := side.find(ctx, build.Path); err != nil {
				return fault.WithHint(err, "name the program itself, such as --"+side.program+" /opt/openssh/bin/"+side.program)
			}
		}
	}
	return nil
}

// Check refuses unknown names, of makers or builds in pairs and of algorithms, and one name for two
// builds.
func Check(pairs, ciphers, macs []string, ssh, sshd []Build) error {
	if len(macs) > 0 && len(ciphers) == 0 {
		return fault.Usage("add --cipher", "--mac is for the ciphers of --cipher")
	}
	clients, servers := makers()
	for _, side := range []struct {
		builds []Build
		known  *[]string
	}{{ssh, &clients}, {sshd, &servers}} {
		for _, build := range side.builds {
			if build.Name != "" && slices.Contains(*side.known, build.Name) {
				return fault.Usage("choose another name", "--name %s: the name is taken", build.Name)
			}
			*side.known = append(*side.known, text.NonEmpty(build.Name)...)
		}
	}
	for _, pair := range pairs {
		client, server, _ := strings.Cut(pair, ":")
		for _, side := range []struct {
			name, what string
			known      []string
		}{{client, "client", clients}, {cmp.Or(server, "*"), "server", servers}} {
			if !slices.ContainsFunc(side.known, func(name string) bool { return alg.Match([]string{side.name}, name) }) {
				return fault.Usage(fmt.Sprintf("there are these %ss: %s; --name NAME=PATH adds one", side.what, strings.Join(side.known, ", ")), "--only %s: unknown %s %q", pair, side.what, side.name)
			}
		}
	}
	return cmp.Or(named("cipher", alg.Cipher, ciphers), named("mac", alg.MAC, macs))
}

// named refuses unknown names of algorithms.
func named(flag string, kind alg.Kind, typed []string) error {
	for _, name := range NamesOf(kind, typed) {
		if _, known := alg.Lookup(kind, name); !known {
			names := alg.Names(kind)
			return fault.Usage(fault.Near("--"+flag+" ", name, names, "there are "+strings.Join(names, ", ")), "unknown %s %q", kind, name)
		}
	}
	return nil
}

// NamesOf translates algorithms as people type them into names of the table. Words that match none,
// such as a glob of other names, stay as they are.
func NamesOf(kind alg.Kind, typed []string) []string {
	var names []string
	for _, word := range alg.Words(typed) {
		if named := alg.Named(word, alg.Names(kind)); len(named) > 0 {
			names = append(names, named...)
		} else {
			names = append(names, word)
		}
	}
	return names
}
