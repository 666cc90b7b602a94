package route

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshconf"
	"sshpace/internal/ssh/wire"
	"sshpace/internal/sys/proc"
)

// installedSSH finds ssh only when somebody asks it something.
func installedSSH(ctx context.Context) sshconf.Runner {
	find := sync.OnceValue(func() sshconf.Runner {
		program, err := openssh.FindClient(context.WithoutCancel(ctx), "")
		if err != nil {
			return missingSSH
		}
		return sshRunner(program.Path)
	})
	return func(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
		return find()(ctx, args...)
	}
}

// sshRunner runs the installed ssh for its answers.
func sshRunner(path string) sshconf.Runner {
	return func(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		err = proc.Run(cmd)
		return out.Bytes(), errs.Bytes(), err
	}
}

// missingSSH is the runner where no ssh is installed.
func missingSSH(context.Context, ...string) (stdout, stderr []byte, err error) {
	return nil, nil, &openssh.NotFoundError{Name: "ssh"}
}

// nativeCapabilities are what the native engine of run can do, what takes it fewest
// round trips first.
func nativeCapabilities() sshconf.Capabilities {
	offer := wire.Offer()
	// The old name of curve25519-sha256 is known, but not among those to offer.
	kex := slices.Clone(offer.Kex)
	kex = slices.Insert(kex, slices.Index(kex, ssh.KeyExchangeCurve25519)+1, "curve25519-sha256@libssh.org")
	return sshconf.Capabilities{Ciphers: offer.Ciphers, MACs: offer.MACs, KexAlgorithms: kex,
		// The insecure ones are used only where a configuration or ssh itself names them.
		HostKeyAlgorithms: append(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys...)}
}

// secureLists stand for those of ssh where none is installed.
func secureLists() map[sshconf.Keyword][]string {
	secure := ssh.SupportedAlgorithms()
	return map[sshconf.Keyword][]string{sshconf.KexAlgorithms: secure.KeyExchanges, sshconf.Ciphers: secure.Ciphers, sshconf.MACs: secure.MACs}
}
