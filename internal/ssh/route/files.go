package route

import (
	"context"
	"errors"
	"slices"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/file"
)

// Configuration is the user's, loaded under the flags of a command.
type Configuration struct {
	*conf.Config
	Asker *conf.Asker
}

// files is one set of files and flags.
type files struct {
	quick *conf.Config                    // knows no installed ssh, unless that alone takes the files
	taken *sched.Together[bool]           // whether the installed ssh accepts the text in quick
	exact *sched.Together[*Configuration] // knows its lists and defaults, and asks it
}

// newFiles reads the files. The installed release may accept what the newest one refuses.
func newFiles(ctx context.Context, p conf.Params, ssh installed) (*files, error) {
	f := &files{exact: &sched.Together[*Configuration]{Find: func(ctx context.Context) (*Configuration, error) { return exactly(ctx, p, ssh) }}}
	var err error
	if f.quick, err = conf.Load(ctx, p); err == nil {
		f.taken = &sched.Together[bool]{Find: func(ctx context.Context) (bool, error) { return taken(ctx, f.quick, ssh) }}
		return f, nil
	}
	if _, silent := errors.AsType[*file.SilentError](err); silent {
		return nil, err
	}
	exact, exactErr := f.exact.Get(ctx)
	if _, missing := errors.AsType[*openssh.NotFoundError](exactErr); missing {
		return nil, err
	}
	if exactErr != nil {
		return nil, exactErr
	}
	f.quick = exact.Config
	f.taken = &sched.Together[bool]{Find: func(context.Context) (bool, error) { return true, nil }}
	return f, nil
}

// taken reports whether ssh accepts the text. If none is installed, nobody refuses it.
func taken(ctx context.Context, c *conf.Config, ssh installed) (bool, error) {
	taken, err := c.TextTaken(ctx, ssh.itself)
	if _, missing := errors.AsType[*openssh.NotFoundError](err); missing {
		return true, nil
	}
	return taken, err
}

// exactly reads the files as the installed ssh does.
func exactly(ctx context.Context, p conf.Params, ssh installed) (*Configuration, error) {
	var err error
	if p.Defaults, err = conf.AskDefaults(ctx, ssh.itself); err != nil {
		return nil, err
	}
	c, err := conf.Load(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := c.CheckText(ctx, ssh.itself); err != nil {
		return nil, err
	}
	return &Configuration{c, conf.NewAsker(c, ssh.configured)}, nil
}

// resolve asks the installed ssh only if nothing else knows the answer: that takes as long as fifty
// logins. The answer is compared with its own defaults, so that these do not look like the user's
// settings.
func (f *files) resolve(ctx context.Context, q host.Endpoint) (*conf.Resolved, error) {
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

// full is exact, or as much as can be known where no ssh is installed.
func (f *files) full(ctx context.Context) (*Configuration, error) {
	exact, err := f.exact.Get(ctx)
	if _, missing := errors.AsType[*openssh.NotFoundError](err); missing {
		return &Configuration{f.quick, conf.NewAsker(f.quick, missingSSH)}, nil
	}
	if err != nil {
		return nil, ConfigError(err)
	}
	return exact, nil
}

// setsLists reports whether any list of algorithms is set: its value may be an edit of ssh's own
// list, and ssh refuses unknown names.
func setsLists(c *conf.Resolved) bool { return slices.ContainsFunc(conf.AlgorithmLists, c.IsSet) }
