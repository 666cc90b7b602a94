package cli

import (
	"github.com/spf13/pflag"

	"sshpace/internal/fanout/sudo"
)

// secretFlags select the account that runs commands, and the source of the password.
type secretFlags struct{ sudo.Secrets }

func (f *secretFlags) register(flags *pflag.FlagSet) {
	f.registerLogin(flags)
	flags.StringVar(&f.User, "sudo", "", "run the command as this user by sudo; its password is asked for once, when the first host wants one, or comes from --password-command")
	flags.Lookup("sudo").NoOptDefVal = "root"
}

// registerLogin defines the flags for commands without sudo.
func (f *secretFlags) registerLogin(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Ask, "ask-pass", false, "ask once, without echo, for the password of hosts that take no key, or for the passphrase of a key")
	flags.StringVar(&f.Command, "password-command", "", "read the password from the first line that this command prints, by sh")
}
