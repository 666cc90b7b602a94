package cli

import (
	"context"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet/hostlist"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/route"
)

// hostFlags say which hosts a command is about.
type hostFlags struct {
	sets, files, exclude []string
	fromConfig           bool
	config               string // -F
}

func (f *hostFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.sets, "hosts", "w", nil, "hosts, such as web[01-20],db1; repeatable")
	flags.StringArrayVar(&f.files, "hosts-file", nil, "file of hosts, one a line, such as root@db1, db1 root or [db1]:2222; - for standard input; repeatable")
	flags.StringArrayVarP(&f.exclude, "exclude", "x", nil, "hosts to leave out; repeatable")
	flags.BoolVar(&f.fromConfig, "from-config", false, "all names on the Host lines of ssh_config")
	flags.StringVarP(&f.config, "config", "F", "", "ssh_config that tells the HostName, Port and HostKeyAlias of the hosts; none for none")
}

// given reports whether any hosts were named.
func (f *hostFlags) given() bool { return len(f.sets)+len(f.files) > 0 || f.fromConfig }

// hosts returns the named hosts as ssh will look them up; nil if none were named.
func (f *hostFlags) hosts(ctx context.Context, sys System) ([]route.LookedUp, error) {
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
		file, err := hostlist.ReadFile(ctx, sys.Stdin, name)
		if err != nil {
			return nil, &Error{Err: err, Hint: "one host per line, # starts a comment", Code: ExitUsage}
		}
		selection.Files = append(selection.Files, file)
	}
	named, err := selection.Hosts()
	if err != nil {
		return nil, &Error{Err: err, Hint: "hosts are written name, user@name, [name]:port or web[01-20]", Code: ExitUsage}
	}
	return config.LookUp(ctx, named)
}

// knownNames are hosts in the form in which they stand in a file.
func knownNames(hosts []route.LookedUp) []string {
	names := make([]string, 0, len(hosts))
	for _, h := range hosts {
		names = append(names, knownhosts.HostPort(h.Name, int(h.Port)))
	}
	return names
}
