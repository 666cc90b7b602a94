package route

import (
	"context"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/transport"
)

// installed asks the installed ssh, which is found at the first question.
type installed struct {
	itself     conf.Runner // about itself, see openssh.Program.Itself
	configured conf.Runner // about its resulting configuration
}

func installedSSH() installed {
	found := &sched.Together[openssh.Program]{Find: openssh.Installed}
	by := func(ask func(openssh.Program) conf.Runner) conf.Runner {
		return func(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
			program, err := found.Get(ctx)
			switch {
			case ctx.Err() != nil:
				return nil, nil, context.Cause(ctx)
			case err != nil:
				return missingSSH(ctx)
			}
			return ask(program)(ctx, args...)
		}
	}
	return installed{
		by(func(p openssh.Program) conf.Runner { return p.Itself }),
		by(func(p openssh.Program) conf.Runner { return p.Ask }),
	}
}

// missingSSH is the runner where no ssh is installed.
func missingSSH(context.Context, ...string) (stdout, stderr []byte, err error) {
	return nil, nil, &openssh.NotFoundError{Name: "ssh"}
}

// nativeCapabilities returns the algorithms of the native engine of run, the ones with the fewest
// round trips first.
func nativeCapabilities() conf.Capabilities {
	kexes, ciphers, macs := transport.Algorithms()
	return conf.Capabilities{Locally: true, Lists: map[conf.Keyword][]string{conf.Ciphers: ciphers, conf.MACs: macs, conf.KexAlgorithms: kexes,
		// The insecure ones are used only where a configuration or ssh itself names them.
		conf.HostKeyAlgorithms: append(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys...)}}
}

// secureLists returns the lists of algorithms to use where no ssh is installed.
func secureLists() map[conf.Keyword][]string {
	secure := ssh.SupportedAlgorithms()
	return map[conf.Keyword][]string{conf.KexAlgorithms: secure.KeyExchanges, conf.Ciphers: secure.Ciphers, conf.MACs: secure.MACs}
}
