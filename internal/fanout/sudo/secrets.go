package sudo

import (
	"context"
	"errors"
	"io"

	"sshpace/internal/base/fault"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

// Secrets select the account that runs commands, and the source of the password.
type Secrets struct {
	User    string    // the account; "" for the login's own
	Ask     bool      // for the password of the hosts, or the passphrase of a key
	Command string    // prints a password
	Ahead   bool      // the password of sudo is asked for at once: later nobody is there
	login   *Password // of the hosts, once it was asked for; nil if none is wanted
}

// Check refuses an invalid user name.
func (s *Secrets) Check() error {
	if err := CheckUser(s.User); err != nil {
		return fault.Usage("--sudo=NAME, or --sudo for root", "--sudo: %s", err)
	}
	return nil
}

// ForLogin reports whether the password is for the hosts themselves: without --sudo a command that
// prints one has no other use.
func (s *Secrets) ForLogin() bool { return s.Ask || s.Command != "" && s.User == "" }

// Login returns the password that hosts will be given, before it is known.
func (s *Secrets) Login() *Password {
	if !s.ForLogin() {
		return nil
	}
	s.login = NewPassword("")
	return s.login
}

// Over asks for the necessary passwords, and wraps ex so that commands run by sudo, if requested.
// The password of sudo alone is asked for when the first host wants it, with nothing else on the
// screen.
func (s *Secrets) Over(ctx context.Context, people *terminal.Screen, ex fleet.Executor) (fleet.Executor, error) {
	switch {
	case s.User == "" && !s.ForLogin():
		return ex, nil
	case s.User != "" && !s.ForLogin() && s.Command == "" && !s.Ahead:
		ask := func(ctx context.Context) (text string, err error) {
			people.Aside(func() { text, err = s.ask(ctx, people) })
			return text, err
		}
		return &Executor{Executor: ex, User: s.User, Password: AskFor(ask)}, nil
	}
	text, err := s.ask(ctx, people)
	if err != nil {
		return nil, err
	}
	if s.login != nil {
		s.login.Set(text)
	}
	if s.User == "" {
		return ex, nil
	}
	return &Executor{Executor: ex, User: s.User, Password: NewPassword(text)}, nil
}

// ask asks for the password, or runs the command that prints it. Without a terminal there is none,
// which works if sudo asks for none.
func (s *Secrets) ask(ctx context.Context, people io.Writer) (string, error) {
	if s.Command != "" {
		return PasswordFrom(ctx, s.Command, people)
	}
	question := "sshpace: your password for sudo on the hosts: "
	if s.Ask {
		question = "sshpace: your password on the hosts, or the passphrase of your key: "
	}
	text, err := terminal.Ask(ctx, question, true)
	if !errors.Is(err, terminal.ErrNobody) {
		return text, err
	}
	if s.Ask {
		return "", fault.Usage("give --password-command COMMAND, which prints the password", "--ask-pass: %s", err)
	}
	return "", nil
}
