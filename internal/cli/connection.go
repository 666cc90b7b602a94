package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
)

// connectionFlags are the flags of ssh(1) that every command with a connection
// takes, with the same letters and meaning.
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

// params are what finds out how hosts are reached.
func (c connectionFlags) params(sys System) route.Params {
	return route.Params{Flags: c.Flags, Getenv: sys.Getenv, Stderr: sys.Stderr}
}

// label is what results call a host.
func (c connectionFlags) label(host string) (string, error) {
	d, err := route.Destination(c.Flags, host)
	return d.Label, err
}

// endFlags say which programs are at the two ends of a connection, and how they get to
// each other.
type endFlags struct {
	ssh, sshd  string
	names      []string      // further ones of programs, NAME=PATH
	connect    seconds       // that is asked for; 0: as configured, else
	usual      time.Duration // what is usual
	connection connectionFlags
}

// register defines the flags of the programs; usual is how long connecting may take where nothing says it.
func (f *endFlags) register(flags *pflag.FlagSet, usual time.Duration) {
	f.usual = usual
	flags.StringVar(&f.ssh, "ssh", "", "path of ssh")
	flags.StringVar(&f.sshd, "sshd", "", "path of sshd")
	flags.Var(&f.connect, "connect-timeout", "time allowed for a connection"+otherwise(usual))
}

// otherwise says what --connect-timeout is where it is not given.
func otherwise(usual time.Duration) string {
	return fmt.Sprintf(" (default: ConnectTimeout of ssh_config, else %s)", usual)
}

// limit is how long connecting to a server of our own may take.
func (f *endFlags) limit() time.Duration { return cmp.Or(time.Duration(f.connect), f.usual) }

// params are what finds out how hosts are reached.
func (f *endFlags) params(sys System) route.Params {
	p := f.connection.params(sys)
	p.ConnectTimeout = time.Duration(f.connect)
	return p
}

// options are the flags that say the same of both ends.
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
