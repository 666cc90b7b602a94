package route

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// ThroughJumps leads ssh to a host of the user's through the jump hosts that its
// configuration and flags name, if any, each with keys as strict as the host's
// own, and refuses those that go in a circle before anything is started. env is
// what ssh needs in its environment for that.
func ThroughJumps(ctx context.Context, p Params, ssh openssh.Program, d openssh.Destination, connect time.Duration) (_ openssh.Destination, env []string, err error) {
	h, err := host.Parse(d.Label)
	if err != nil {
		return d, nil, err
	}
	r, err := New(ctx, p)
	if err != nil {
		return d, nil, err
	}
	found, err := r.Route(ctx, h)
	if err != nil {
		return d, nil, ResolveError(err, h.Name)
	}
	through, env := r.ThroughJumps(found, ssh, d, connect)
	return through, env, nil
}

// ThroughJumps leads ssh through the jump hosts of a route, with keys as strict as
// the host's own. env is what ssh needs in its environment for that.
func (r *Router) ThroughJumps(found *Route, ssh openssh.Program, d openssh.Destination, connect time.Duration) (_ openssh.Destination, env []string) {
	if len(found.Jumps) == 0 {
		return d, nil
	}
	// As with the host itself: a master may have been opened under other rules.
	options := []string{"-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", openssh.ConnectTimeout(connect)}
	if r.params.Connection.Config != "" {
		options = append(options, "-F", r.params.Connection.Config)
	}
	proxy, env := (&Route{Jumps: found.Jumps}).through(ssh.Path, options)
	d.Options = append(proxy, withoutJump(d.Options)...)
	return d, env
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

// hostKeyOptions decide about host keys, whatever the user's options and files
// say: never below strict, and new keys only where they are asked for. The
// first value of an option wins in ssh, so they stand before all others.
func hostKeyOptions(acceptNew bool) []string {
	strict := "yes"
	if acceptNew {
		strict = "accept-new"
	}
	return []string{"-o", "StrictHostKeyChecking=" + strict, "-o", "NoHostAuthenticationForLocalhost=no"}
}

// SSHOptions lead an ssh to the host of a route as every engine goes there: through the
// same jump hosts, and with the same policy about the keys of all of them. options are
// handed to the ssh of each jump host (-F FILE). env is what ssh needs in its environment.
func (w *Route) SSHOptions(program string, options []string) (argv, env []string) {
	jumps, env := w.through(program, options)
	return append(hostKeyOptions(w.acceptsNew(w.Host)), jumps...), env
}

func (w *Route) acceptsNew(c *conf.Resolved) bool { return w.accepts != nil && w.accepts(c) }

// through makes ssh go through the jump hosts, as its -J would. But that starts an ssh for
// each of them under what their configuration says about host keys alone, and asks a person
// if there is a terminal.
//
// The command for each jump host but the last is handed to the one behind it in
// a variable of env, so that no text is quoted more than once.
func (w *Route) through(program string, options []string) (argv, env []string) {
	if len(w.Jumps) == 0 {
		return nil, nil
	}
	variable := func(i int) string { return fmt.Sprintf("SSHPACE_JUMP_%d", i) }
	var command string
	for i, jump := range w.Jumps {
		before := ""
		if i > 0 {
			env = append(env, variable(i-1)+"="+command)
			before = ` -o "ProxyCommand=$` + variable(i-1) + `"`
		}
		command = w.jumpCommand(program, jump, options) + before + " -W '[%h]:%p' -- " + jump.Name
	}
	return []string{"-o", "ProxyCommand=" + command}, env
}

// jumpCommand is the beginning of the command for one jump host, for a shell
// and behind ssh's own expansion of tokens.
func (w *Route) jumpCommand(program string, jump *conf.Resolved, options []string) string {
	argv := append([]string{program}, hostKeyOptions(w.acceptsNew(jump))...)
	argv = append(argv, "-o", "BatchMode=yes", "-o", "UpdateHostKeys=no")
	argv = append(argv, options...)
	argv = append(argv, "-l", jump.User(), "-p", strconv.Itoa(jump.Port()))
	var words []string
	for _, word := range argv {
		words = append(words, strings.ReplaceAll(shell.Quote(word), "%", "%%"))
	}
	return strings.Join(words, " ")
}
