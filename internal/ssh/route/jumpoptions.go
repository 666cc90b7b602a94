package route

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// ThroughJumps leads ssh to a user's host through the jump hosts that its configuration and flags
// name, if any, each with keys as strict as the host's own, and refuses circles before anything is
// started. It finds the master that the user has. limit is the timeout of connecting as a whole,
// usual its default where neither a flag nor the configuration sets it.
func ThroughJumps(ctx context.Context, p Params, ssh openssh.Program, d openssh.Destination, usual time.Duration) (_ openssh.Destination, limit time.Duration, err error) {
	h, err := host.Parse(d.Label)
	if err != nil {
		return d, 0, err
	}
	r, err := New(ctx, p)
	if err != nil {
		return d, 0, err
	}
	found, err := r.Route(ctx, h)
	if err != nil {
		return d, 0, ResolveError(err, h.Name)
	}
	d = r.ThroughJumps(found, ssh, d, usual)
	d.Master = ssh.Live(ctx, r.Master(found.Host), d.Host)
	d.Connect, limit = p.Waits(ctx, found, usual)
	return d, limit, nil
}

// ThroughJumps leads ssh through the jump hosts of a route, with keys as strict as the host's own.
func (r *Router) ThroughJumps(found *Route, ssh openssh.Program, d openssh.Destination, usual time.Duration) openssh.Destination {
	d.Way, d.Env = (&Route{Jumps: found.Jumps}).through(ssh.Path, func(jump *conf.Resolved) []string {
		// As with the host itself: a master may have been opened under other rules.
		f := conf.Flags{Config: r.params.Flags.Config, Settings: []string{"ControlMaster=no", "ControlPath=none"}}
		if asked := r.params.ConnectTimeout; asked > 0 || jump.Duration(conf.ConnectTimeout) == 0 {
			f.Settings = append(f.Settings, openssh.ConnectTimeout(cmp.Or(asked, usual)))
		}
		return f.Options()
	})
	return d
}

// hostKeySettings returns the settings for host keys, which the user's options and files cannot
// change: never below strict, and new keys only on request. The first value of an option wins in
// ssh, so they come before all others.
func hostKeySettings(acceptNew bool) []string {
	strict := "yes"
	if acceptNew {
		strict = "accept-new"
	}
	return []string{"StrictHostKeyChecking=" + strict, "NoHostAuthenticationForLocalhost=no"}
}

// SSHOptions returns the arguments that lead an ssh to the host of a route as every engine goes
// there: through the same jump hosts, and with the same policy about the keys of all of them. The
// ssh of each jump host gets options (-F FILE). env is the environment that ssh needs.
func (w *Route) SSHOptions(program string, options func(jump *conf.Resolved) []string) (argv, env []string) {
	way, env := w.through(program, options)
	d := openssh.Destination{Way: way}.With(hostKeySettings(w.acceptsNew(w.Host))...)
	return d.Options(), env
}

func (w *Route) acceptsNew(c *conf.Resolved) bool { return w.accepts != nil && w.accepts(c) }

// through returns the ProxyCommand through the jump hosts, "" where there are none. ssh's -J starts
// an ssh for each of them under their configuration about host keys alone, and asks a person if
// there is a terminal.
//
// Each jump host gets the command for the one before it in a variable of env, so that no text is
// quoted more than once.
func (w *Route) through(program string, options func(jump *conf.Resolved) []string) (command string, env []string) {
	variable := func(i int) string { return fmt.Sprintf("SSHPACE_JUMP_%d", i) }
	for i, jump := range w.Jumps {
		before := ""
		if i > 0 {
			env = append(env, variable(i-1)+"="+command)
			before = ` -o "ProxyCommand=$` + variable(i-1) + `"`
		}
		command = w.jumpCommand(program, jump, options(jump)) + before + " -W '[%h]:%p' -- " + jump.Name
	}
	return command, env
}

// jumpCommand returns the beginning of the command for one jump host, for a shell and after ssh's
// own expansion of tokens.
func (w *Route) jumpCommand(program string, jump *conf.Resolved, options []string) string {
	policy := conf.Flags{Settings: append(hostKeySettings(w.acceptsNew(jump)), "BatchMode=yes", "UpdateHostKeys=no")}
	at := conf.Flags{User: jump.User(), Port: uint16(jump.Port())}
	var words []string
	for _, word := range slices.Concat([]string{program}, policy.Options(), options, at.Options()) {
		words = append(words, strings.ReplaceAll(shell.Quote(word), "%", "%%"))
	}
	return strings.Join(words, " ")
}
