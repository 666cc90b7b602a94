package cli

import (
	"bytes"
	"context"
	"io"
	"regexp"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/bounded"
)

// hostFlags say which hosts a command is about.
type hostFlags struct {
	sets, files, exclude []string
	fromConfig           bool
	config               string // -F
}

func (f *hostFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.sets, "hosts", "w", nil, "hosts, such as web[01-20],db1; repeatable")
	flags.StringArrayVar(&f.files, "hosts-file", nil, "file with a host per line, such as root@db1 or [db1]:2222; - for standard input; repeatable")
	flags.StringArrayVarP(&f.exclude, "exclude", "x", nil, "hosts to leave out; repeatable")
	flags.BoolVar(&f.fromConfig, "from-config", false, "all names on the Host lines of ssh_config")
	flags.StringVarP(&f.config, "config", "F", "", "ssh_config that tells the HostName, Port and HostKeyAlias of the hosts; none for none")
}

// given reports whether any hosts were named.
func (f *hostFlags) given() bool { return len(f.sets)+len(f.files) > 0 || f.fromConfig }

// lookedUp is a host under the name that ssh looks up for it.
type lookedUp struct {
	host.Host        // HostName and Port, or the HostKeyAlias alone
	typed     string // what the user types after ssh
	alias     bool   // Name is a HostKeyAlias
}

// hosts returns the named hosts as ssh will look them up; nil if none were named.
func (f *hostFlags) hosts(ctx context.Context, sys System) ([]lookedUp, error) {
	if !f.given() {
		return nil, nil
	}
	config, err := loadSSHConfig(ctx, sys, connectionFlags{route.Connection{Config: f.config}})
	if err != nil {
		return nil, err
	}
	selection := hostset.Selection{Sets: f.sets, Exclude: f.exclude}
	selection.Options.Known = func() ([]string, error) { return config.HostNames(), nil }
	if f.fromConfig {
		selection.Sets = append(selection.Sets, config.HostNames()...)
	}
	for _, name := range f.files {
		file, err := readHostsFile(ctx, sys, name)
		if err != nil {
			return nil, &Error{Err: err, Hint: "one host per line, # starts a comment", Code: ExitUsage}
		}
		selection.Files = append(selection.Files, file)
	}
	named, err := selection.Hosts()
	if err != nil {
		return nil, &Error{Err: err, Hint: "hosts are written name, user@name, [name]:port or web[01-20]", Code: ExitUsage}
	}
	return resolveNames(ctx, config, named)
}

// resolveNames turns what people type into what ssh looks up.
func resolveNames(ctx context.Context, config *route.Configuration, named []host.Host) ([]lookedUp, error) {
	hosts := make([]lookedUp, 0, len(named))
	for _, h := range named {
		r, err := config.Asker.Resolve(ctx, route.Query(h))
		if err != nil {
			return nil, route.ResolveError(err, h.Name)
		}
		found := lookedUp{Host: host.Host{Name: r.HostName(), Port: uint16(r.Port()), Origin: h.Origin}, typed: h.Name}
		if alias := r.HostKeyAlias(); alias != "" {
			found = lookedUp{Host: host.Host{Name: alias, Origin: h.Origin}, typed: h.Name, alias: true}
		}
		hosts = append(hosts, found)
	}
	return hosts, nil
}

// readHostsFile reads a list of hosts; "-" is standard input.
func readHostsFile(ctx context.Context, sys System, name string) (*hostset.HostsFile, error) {
	var text []byte
	var err error
	if name == "-" {
		name = "standard input"
		text, err = readInput(ctx, sys.Stdin)
	} else {
		text, err = bounded.ReadFile(name, bounded.List)
	}
	if err != nil {
		return nil, err
	}
	return hostset.ReadHosts(bytes.NewReader(bracketed.ReplaceAll(text, []byte("$1$2:$3"))), name)
}

// bracketed is a host as it stands in known_hosts, [name]:port, which a host set
// would take for a range of numbers.
var bracketed = regexp.MustCompile(`(?m)^([ \t]*(?:[^\s@]+@)?)\[([^\[\]:\s]*[^\[\]:\s0-9,/-][^\[\]:\s]*)\]:([0-9]+)`)

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

// knownNames are hosts in the form in which they stand in a file.
func knownNames(hosts []lookedUp) []string {
	names := make([]string, 0, len(hosts))
	for _, h := range hosts {
		names = append(names, knownhosts.HostPort(h.Name, int(h.Port)))
	}
	return names
}
