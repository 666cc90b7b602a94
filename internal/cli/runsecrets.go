package cli

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/sudo"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/sys/terminal"
)

// secretFlags say as whom commands run, and where the password comes from.
type secretFlags struct {
	sudo    string
	ask     bool
	command string
	login   *sudo.Password // of the hosts, once it was asked for; nil where none is wanted
}

func (f *secretFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.sudo, "sudo", "", "run the command as this user by sudo; its password is asked once, without echo")
	flags.Lookup("sudo").NoOptDefVal = "root"
	flags.BoolVar(&f.ask, "ask-pass", false, "ask once, without echo, for the password of hosts that take no key, or for the passphrase of a key")
	flags.StringVar(&f.command, "password-command", "", "read the password of the hosts, or with --sudo that of sudo, from the first line that this command prints, by sh")
}

func (f *secretFlags) check() error {
	if err := sudo.CheckUser(f.sudo); err != nil {
		return usageError("--sudo=NAME, or --sudo for root", "--sudo: %s", err)
	}
	return nil
}

// forLogin tells whether the password is for the hosts themselves: what else could one
// that a command prints be for without --sudo?
func (f *secretFlags) forLogin() bool { return f.ask || f.command != "" && f.sudo == "" }

// password is the one that hosts will be given, before it is known.
func (f *secretFlags) password() dial.Password {
	if !f.forLogin() {
		return nil
	}
	f.login = sudo.NewPassword("")
	return f.login
}

// executor asks for what is needed, and lets commands run by sudo, if they are to.
func (f *secretFlags) executor(ctx context.Context, sys System, ex fleet.Executor) (fleet.Executor, error) {
	if f.sudo == "" && !f.forLogin() {
		return ex, nil
	}
	text, err := f.secret(ctx, sys)
	if err != nil {
		return nil, err
	}
	if f.login != nil {
		f.login.Set(text)
	}
	if f.sudo == "" {
		return ex, nil
	}
	return &sudo.Executor{Executor: ex, User: f.sudo, Password: sudo.NewPassword(text)}, nil
}

// secret asks for the password, or runs what knows it. Without a terminal there is
// none, which does where sudo asks for none.
func (f *secretFlags) secret(ctx context.Context, sys System) (string, error) {
	if f.command != "" {
		return sudo.PasswordFrom(ctx, f.command, sys.Stderr)
	}
	question := "sshpace: your password for sudo on the hosts (empty if it asks for none): "
	if f.ask {
		question = "sshpace: your password on the hosts, or the passphrase of your key: "
	}
	text, err := terminal.Ask(ctx, question, true)
	if !errors.Is(err, terminal.ErrNobody) {
		return text, err
	}
	if f.ask {
		return "", usageError("give --password-command COMMAND, which prints the password", "--ask-pass: %s", err)
	}
	return "", nil
}
