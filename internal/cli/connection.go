package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
)

// connectionFlags are the flags of ssh(1) that every command with a connection takes, with the same
// letters and meaning.
type connectionFlags struct{ conf.Flags }

func (c *connectionFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&c.Config, "config", "F", "", "ssh_config file to use instead of your own")
	flags.StringArrayVarP(&c.Settings, "option", "o", nil, "ssh_config option, such as -o User=backup; repeatable")
	flags.VarP(c.PortFlag(), "port", "p", "port of the host")
	flags.VarP(c.UserFlag(), "login", "l", "user to log in as")
	flags.StringArrayVarP(&c.Identities, "identity", "i", nil, "file of a private key; repeatable")
	flags.VarP(c.JumpFlag(), "jump", "J", "jump hosts, separated by commas")
	flags.BoolVarP(&c.IPv4, "ipv4", "4", false, "use IPv4 only")
	flags.BoolVarP(&c.IPv6, "ipv6", "6", false, "use IPv6 only")
}

// params returns the parameters for finding the routes to hosts.
func (c connectionFlags) params(sys System) route.Params {
	return route.Params{Flags: c.Flags, Getenv: sys.Getenv, Stderr: sys.Stderr}
}

// label returns the name of a host in results.
func (c connectionFlags) label(host string) (string, error) {
	d, err := route.Destination(c.Flags, host)
	return d.Label, err
}

// endFlags select the programs at the two ends of a connection, and the route between them.
type endFlags struct {
	ssh, sshd  string
	names      []string      // further ones of programs, NAME=PATH
	connect    seconds       // given timeout; 0: as configured, otherwise usual
	usual      time.Duration // the default
	connection connectionFlags
}

// register defines the flags of the programs; usual is the connect timeout where nothing sets it.
func (f *endFlags) register(flags *pflag.FlagSet, usual time.Duration) {
	f.usual = usual
	flags.StringVar(&f.ssh, "ssh", "", "path of ssh")
	flags.StringVar(&f.sshd, "sshd", "", "path of sshd")
	flags.Var(&f.connect, "connect-timeout", "time allowed for a connection"+otherwise(usual))
}

// otherwise describes the default of --connect-timeout.
func otherwise(usual time.Duration) string {
	return fmt.Sprintf(" (default: ConnectTimeout of ssh_config, otherwise %s)", usual)
}

// limit is the connect timeout for our own server.
func (f *endFlags) limit() time.Duration { return cmp.Or(time.Duration(f.connect), f.usual) }

// params returns the parameters for finding the routes to hosts.
func (f *endFlags) params(sys System) route.Params {
	p := f.connection.params(sys)
	p.ConnectTimeout = time.Duration(f.connect)
	return p
}

// options returns the flags that select the same ends.
func (f *endFlags) options() []string {
	out := f.connection.Options()
	for _, end := range []struct{ flag, path string }{{"--ssh", f.ssh}, {"--sshd", f.sshd}} {
		if end.path != "" {
			out = append(out, end.flag, end.path)
		}
	}
	for _, name := range f.names {
		out = append(out, "--name", name)
	}
	return out
}
