package cli

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/sudo"
	"sshpace/internal/sys/terminal"
)

// secretFlags say as whom commands run, and where the password comes from.
type secretFlags struct {
	sudo    string
	command string
}

func (f *secretFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.sudo, "sudo", "", "run the command as this user by sudo; its password is asked once, without echo")
	flags.Lookup("sudo").NoOptDefVal = "root"
	flags.StringVar(&f.command, "password-command", "", "read the password from the first line that this command prints, by sh, instead of asking")
}

func (f *secretFlags) check() error {
	switch err := sudo.CheckUser(f.sudo); {
	case err != nil:
		return usageError("--sudo=NAME, or --sudo for root", "--sudo: %s", err)
	case f.command != "" && f.sudo == "":
		return usageError("give --sudo, too", "--password-command is for --sudo")
	}
	return nil
}

// executor lets commands run by sudo, if they are to.
func (f *secretFlags) executor(ctx context.Context, sys System, ex fleet.Executor) (fleet.Executor, error) {
	if f.sudo == "" {
		return ex, nil
	}
	text, err := f.password(ctx, sys)
	if err != nil {
		return nil, err
	}
	return &sudo.Executor{Executor: ex, User: f.sudo, Password: sudo.NewPassword(text)}, nil
}

// password asks for the password, or runs what knows it. Without a terminal there
// is none, which does where sudo asks for none.
func (f *secretFlags) password(ctx context.Context, sys System) (string, error) {
	if f.command != "" {
		return sudo.PasswordFrom(ctx, f.command, sys.Stderr)
	}
	text, err := terminal.Ask(ctx, "sshpace: your password for sudo on the hosts (empty if it asks for none): ", true)
	if errors.Is(err, terminal.ErrNobody) {
		return "", nil
	}
	return text, err
}
