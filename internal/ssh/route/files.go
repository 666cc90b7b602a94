package route

import (
	"context"
	"errors"
	"slices"

	"sshpace/internal/base/wait"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshconf"
)

// Configuration is the user's, loaded under the flags of a command.
type Configuration struct {
	*sshconf.Config
	Asker *sshconf.Asker
}

// files is one set of files and flags.
type files struct {
	quick *sshconf.Config                // knows no installed ssh, unless that alone takes the files
	taken *wait.Together[bool]           // tells whether the installed ssh takes what quick keeps as text
	exact *wait.Together[*Configuration] // knows its lists and defaults, and asks it
}

// newFiles reads them. What the newest release refuses, the installed one may take.
func newFiles(ctx context.Context, p sshconf.Params, ssh sshconf.Runner) (*files, error) {
	f := &files{exact: &wait.Together[*Configuration]{Find: func(ctx context.Context) (*Configuration, error) { return exactly(ctx, p, ssh) }}}
	var err error
	if f.quick, err = sshconf.Load(ctx, p); err == nil {
		f.taken = &wait.Together[bool]{Find: func(ctx context.Context) (bool, error) { return taken(ctx, f.quick, ssh) }}
		return f, nil
	}
	exact, exactErr := f.exact.Get(ctx)
	if _, missing := errors.AsType[*openssh.NotFoundError](exactErr); missing {
		return nil, err
	}
	if exactErr != nil {
		return nil, exactErr
	}
	f.quick = exact.Config
	f.taken = &wait.Together[bool]{Find: func(context.Context) (bool, error) { return true, nil }}
	return f, nil
}

// taken tells whether ssh takes the text. Where none is installed nobody refuses it.
func taken(ctx context.Context, c *sshconf.Config, ssh sshconf.Runner) (bool, error) {
	taken, err := c.TextTaken(ctx, ssh)
	if _, missing := errors.AsType[*openssh.NotFoundError](err); missing {
		return true, nil
	}
	return taken, err
}

// exactly reads the files as the installed ssh does.
func exactly(ctx context.Context, p sshconf.Params, ssh sshconf.Runner) (*Configuration, error) {
	var err error
	if p.Defaults, err = sshconf.AskDefaults(ctx, ssh); err != nil {
		return nil, err
	}
	c, err := sshconf.Load(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := c.CheckText(ctx, ssh); err != nil {
		return nil, err
	}
	return &Configuration{c, sshconf.NewAsker(c, ssh)}, nil
}

// resolve asks the installed ssh only where nobody else knows the answer: it
// takes as long as fifty logins. What it says is taken against its own
// defaults, so that these do not look like the user's settings.
func (f *files) resolve(ctx context.Context, q sshconf.Query) (*sshconf.Resolved, error) {
	taken, err := f.taken.Get(ctx)
	if err != nil {
		return nil, err
	}
	quick, err := f.quick.Resolve(ctx, q)
	if taken && err == nil && len(quick.Gaps) == 0 && !setsLists(quick) {
		return quick, nil
	}
	exact, exactErr := f.exact.Get(ctx)
	switch {
	case exactErr == nil:
		return exact.Asker.Resolve(ctx, q)
	case err != nil:
		return nil, err
	}
	return nil, exactErr
}

// full is exact, or what can be known where no ssh is installed.
func (f *files) full(ctx context.Context) (*Configuration, error) {
	exact, err := f.exact.Get(ctx)
	if _, missing := errors.AsType[*openssh.NotFoundError](err); missing {
		return &Configuration{f.quick, sshconf.NewAsker(f.quick, missingSSH)}, nil
	}
	if err != nil {
		return nil, ConfigError(err)
	}
	return exact, nil
}

// lists are the keywords of algorithms: values may be edits of ssh's own lists, and ssh
// refuses names that it does not know.
var lists = []sshconf.Keyword{
	sshconf.Ciphers, sshconf.MACs, sshconf.KexAlgorithms, sshconf.HostKeyAlgorithms, sshconf.PubkeyAcceptedAlgorithms,
}

// setsLists tells whether any of them is set.
func setsLists(c *sshconf.Resolved) bool { return slices.ContainsFunc(lists, c.IsSet) }
