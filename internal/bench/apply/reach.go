package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/file"
)

// systemClientConfig is the file that ssh reads after the user's own (ssh_config(5)).
const systemClientConfig = "/etc/ssh/ssh_config"

// reachedHost is a host with its present negotiation.
type reachedHost struct {
	name string
	now  alg.Suite
}

// CheckNow finds the hosts that can be reached now. The others are named, and have no influence on
// the advice; before a change each must be reached.
func (a *Advised) CheckNow(ctx context.Context) error {
	for _, name := range a.Hosts {
		got, err := a.negotiated(ctx, name, a.Flags)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && a.Sides != "":
			return fault.WithHint(fmt.Errorf("%s cannot be reached now, so it cannot be checked; nothing was written: %s", name, termsafe.OneLine(err.Error())),
				"try ssh "+shell.Word(name)+" true, or leave it out of --check")
		case err != nil:
			fmt.Fprintf(a.Out, "# check %s: not reached now, so not checked: %s\n", termsafe.Line(name), termsafe.Line(err.Error()))
		default:
			a.reached = append(a.reached, reachedHost{name, got})
		}
	}
	return nil
}

// stillReached returns an error for a host that could be reached, and no longer can with the
// configuration of these files, read one after the other.
func (a *Advised) stillReached(ctx context.Context, files ...string) error {
	if len(a.reached) == 0 {
		return nil
	}
	connection, err := a.together(files)
	if err != nil {
		return err
	}
	for _, host := range a.reached {
		got, err := a.negotiated(ctx, host.name, connection)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fault.WithHint(fmt.Errorf("%s could no longer be reached: %s", host.name, termsafe.OneLine(err.Error())),
				"leave out --strict, or give the advice to other hosts with --host")
		}
		fmt.Fprintf(a.Out, "# check %s: %s -> %s\n", termsafe.Line(host.name), termsafe.Line(host.now.String()), termsafe.Line(got.String()))
	}
	return nil
}

// negotiated returns the suite that ssh agrees on with a host, in a login.
func (a *Advised) negotiated(ctx context.Context, name string, connection conf.Flags) (alg.Suite, error) {
	destination, err := route.Destination(connection, name)
	if err != nil {
		return alg.Suite{}, err
	}
	p := a.Params.Params
	p.Flags = connection
	destination, limit, err := route.ThroughJumps(ctx, p, a.ssh.program, destination, a.Usual)
	if err != nil {
		return alg.Suite{}, err
	}
	n, err := a.ssh.program.Negotiate(ctx, destination, a.Dir.File("check.log"), limit)
	return alg.NewSuite(n.Got.Cipher, n.Got.MAC, n.Got.Kex), err
}

// together returns the user's connection by these files, as if ssh had read them itself. Without -F
// it reads those of the system after them.
func (a *Advised) together(files []string) (conf.Flags, error) {
	connection := a.Flags
	if connection.Config == "" {
		files = append(files, systemClientConfig)
	}
	var text strings.Builder
	for _, file := range files {
		absolute, err := filepath.Abs(file)
		if err != nil {
			return connection, err
		}
		fmt.Fprintf(&text, "Host *\nInclude \"%s\"\n", absolute)
	}
	connection.Config = a.Dir.File("check_ssh_config")
	return connection, os.WriteFile(connection.Config, []byte(text.String()), 0o600)
}

// CheckPrinted checks the printed lines, as if they had been written into the user's ssh_config.
func (a *Advised) CheckPrinted(ctx context.Context) error {
	if len(a.reached) == 0 {
		return nil
	}
	own, _, err := a.ssh.file()
	if err != nil {
		return err
	}
	old, err := file.ReadFile(own, file.Config)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err := a.block(a.ssh).Into(old)
	if err != nil {
		return err
	}
	file := a.Dir.File("printed_ssh_config")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	return a.stillReached(ctx, file)
}
