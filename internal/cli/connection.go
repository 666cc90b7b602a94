package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/openssh"
)

// connectionFlags are the flags of ssh(1) that every command with a connection
// takes, with the same letters and meaning.
type connectionFlags struct {
	config     string
	settings   []string
	port       uint16
	user       string
	identities []string
	jump       string
	ipv4, ipv6 bool
}

func (c *connectionFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&c.config, "config", "F", "", "ssh_config file to use instead of your own")
	flags.StringArrayVarP(&c.settings, "option", "o", nil, "ssh_config option, such as -o User=backup; repeatable")
	flags.Uint16VarP(&c.port, "port", "p", 0, "port of the host")
	flags.StringVarP(&c.user, "login", "l", "", "user to log in as")
	flags.StringArrayVarP(&c.identities, "identity", "i", nil, "file of a private key; repeatable")
	flags.StringVarP(&c.jump, "jump", "J", "", "jump hosts, separated by commas")
	flags.BoolVarP(&c.ipv4, "ipv4", "4", false, "use IPv4 only")
	flags.BoolVarP(&c.ipv6, "ipv6", "6", false, "use IPv6 only")
}

// check refuses flags that contradict each other.
func (c connectionFlags) check() error {
	if c.ipv4 && c.ipv6 {
		return usageError("leave one of them out", "-4 and -6 exclude each other")
	}
	return nil
}

// options are the arguments that pass the flags on to ssh.
func (c connectionFlags) options() []string {
	var argv []string
	add := func(flag, value string) {
		if value != "" {
			argv = append(argv, flag, value)
		}
	}
	add("-F", c.config)
	for _, setting := range c.settings {
		add("-o", setting)
	}
	if c.port != 0 {
		add("-p", strconv.Itoa(int(c.port)))
	}
	add("-l", c.user)
	for _, identity := range c.identities {
		add("-i", identity)
	}
	add("-J", c.jump)
	if c.ipv4 {
		argv = append(argv, "-4")
	}
	if c.ipv6 {
		argv = append(argv, "-6")
	}
	return argv
}

// parseDestination checks the host that the user named and adds the connection
// flags, which win over what the host's text says: ssh takes the first, and options
// usually stand before the host.
func parseDestination(text string, c connectionFlags) (openssh.Destination, error) {
	if err := c.check(); err != nil {
		return openssh.Destination{}, err
	}
	h, err := host.Parse(text)
	if err != nil {
		return openssh.Destination{}, usageError("write it as user@host, user@host:port or ssh://user@host:port", "%s", err)
	}
	if c.user != "" {
		if err := host.CheckUser(c.user); err != nil {
			return openssh.Destination{}, usageError("name a login with -l", "-l: %s", err)
		}
	}
	options := c.options()
	if h.User != "" {
		options = append(options, "-l", h.User)
	}
	if h.Port != 0 {
		options = append(options, "-p", fmt.Sprint(h.Port))
	}
	return openssh.Destination{Host: h.Name, Label: h.String(), Options: options}, nil
}

// throughJumps leads ssh to a host of the user's through the jump hosts that its
// configuration and flags name, if any, each with keys as strict as the host's
// own, and refuses those that go in a circle before anything is started. env is
// what ssh needs in its environment for that.
func throughJumps(ctx context.Context, sys System, ssh openssh.Program, d openssh.Destination, c connectionFlags, connect time.Duration) (_ openssh.Destination, env []string, err error) {
	h, err := host.Parse(d.Label)
	if err != nil {
		return d, nil, err
	}
	r, err := newRouter(ctx, sys, c, "")
	if err != nil {
		return d, nil, err
	}
	way, err := r.route(ctx, h)
	if err != nil {
		return d, nil, resolveError(err, h.Name)
	}
	if len(way.jumps) == 0 {
		return d, nil, nil
	}
	jumps := r.sshJumps(way)
	for i := range jumps {
		jumps[i].AcceptNew = false
	}
	// As with the host itself: a master may have been opened under other rules.
	options := []string{"-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "ConnectTimeout=" + strconv.Itoa(max(1, int(connect.Seconds())))}
	if c.config != "" {
		options = append(options, "-F", c.config)
	}
	proxy, env := openssh.JumpOptions(ssh.Path, jumps, options)
	d.Options = append(proxy, withoutJump(d.Options)...)
	return d, env, nil
}

// withoutJump leaves out -J, which ssh does not take together with a
// ProxyCommand.
func withoutJump(options []string) []string {
	i := slices.Index(options, "-J")
	if i < 0 {
		return options
	}
	return slices.Delete(slices.Clone(options), i, i+2)
}

// commandLine writes arguments as a shell reads them, each with a blank behind.
func commandLine(args []string) string {
	var b strings.Builder
	for _, arg := range args {
		if strings.ContainsFunc(arg, func(r rune) bool { return !strings.ContainsRune(plainRunes, r) }) || arg == "" {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		b.WriteString(arg + " ")
	}
	return b.String()
}

// plainRunes mean nothing to a shell.
const plainRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%"
