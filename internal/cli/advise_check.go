package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/sys/bounded"
)

// systemClientConfig is what ssh reads after the user's own file (ssh_config(5)).
const systemClientConfig = "/etc/ssh/ssh_config"

// checkedHost is a host of --check with what it negotiates now.
type checkedHost struct {
	name string
	now  alg.Suite
}

// checkReach looks at the hosts of --check: as they are now, and, where nothing
// is going to be written and checked then, with the lines.
func (a *adviser) checkReach(ctx context.Context) error {
	if err := a.beforeChange(ctx); err != nil || a.flags.write != "" || len(a.checked) == 0 {
		return err
	}
	return a.checkPrinted(ctx)
}

// beforeChange finds out which hosts of --check can be reached now. The others
// are named, and say nothing about the advice.
func (a *adviser) beforeChange(ctx context.Context) error {
	for _, name := range a.flags.hosts {
		got, err := a.negotiated(ctx, name, a.flags.connection)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintf(a.sys.Stdout, "# check %s: not reached now, so not checked: %s\n", termsafe.Line(name), termsafe.Line(err.Error()))
		default:
			a.checked = append(a.checked, checkedHost{name, got})
		}
	}
	return nil
}

// stillReached finds a host of --check that could be reached, and with the
// configuration of these files, read one after the other, no longer can be.
func (a *adviser) stillReached(ctx context.Context, files ...string) error {
	if len(a.checked) == 0 {
		return nil
	}
	connection, err := a.together(files)
	if err != nil {
		return err
	}
	for _, host := range a.checked {
		got, err := a.negotiated(ctx, host.name, connection)
		if err != nil {
			return withHint(fmt.Errorf("%s would not be reached any more: %s", host.name, oneLine(err.Error())),
				"leave --strict out, or give the advice to other hosts with --host")
		}
		fmt.Fprintf(a.sys.Stdout, "# check %s: %s -> %s\n", termsafe.Line(host.name), termsafe.Line(host.now.String()), termsafe.Line(got.String()))
	}
	return nil
}

// negotiated is what ssh agrees on with a host, without a login.
func (a *adviser) negotiated(ctx context.Context, name string, connection connectionFlags) (alg.Suite, error) {
	destination, err := connection.Destination(name)
	if err != nil {
		return alg.Suite{}, err
	}
	log := a.dir.File("check.log")
	defer os.Remove(log)
	n, err := a.ssh.Negotiate(ctx, destination, log, time.Duration(a.flags.connect))
	return alg.NewSuite(n.Got.Cipher, n.Got.MAC, n.Got.Kex), err
}

// together is the user's connection by these files, as if ssh had read them
// itself. Without -F it reads those of the system after them.
func (a *adviser) together(files []string) (connectionFlags, error) {
	connection := a.flags.connection
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
	connection.Config = a.dir.File("check_ssh_config")
	return connection, os.WriteFile(connection.Config, []byte(text.String()), 0o600)
}

// checkPrinted checks the lines that were printed, as if they had been written
// into the user's ssh_config.
func (a *adviser) checkPrinted(ctx context.Context) error {
	own, err := a.clientFile()
	if err != nil {
		return err
	}
	old, err := bounded.ReadFile(own, bounded.Config)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err := a.clientBlock().Into(old)
	if err != nil {
		return err
	}
	file := a.dir.File(adviceClientFile)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	return a.stillReached(ctx, file)
}
