package reach

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/check"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/sys/proc"
)

// local returns the runner of a host's LocalCommand, nil where it has none. As with ssh its exit
// status does not count; a shell that cannot be started is reported. Its input is empty.
func (e *Executor) local(c *conf.Resolved) (func(ctx context.Context, stdout, stderr io.Writer), error) {
	command, err := c.LocalCommand()
	if err != nil || command == "" {
		return nil, err
	}
	return func(ctx context.Context, stdout, stderr io.Writer) {
		cmd := e.params.UserShell(ctx, command)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		if err := proc.RunTied(cmd); cmd.Process == nil {
			fmt.Fprintf(stderr, "LocalCommand: %s\n", err)
		}
	}, nil
}

// policy decides about the host keys of a configuration: by known_hosts files, and by its
// KnownHostsCommand.
func (e *Executor) policy(c *conf.Resolved) dial.HostKeys {
	if !c.IsSet(conf.KnownHostsCommand) {
		return e.hostKeys(c)
	}
	return &commanded{e.hostKeys(c), e, c}
}

// commanded is a policy that asks the KnownHostsCommand of one host as well.
type commanded struct {
	*hostKeys
	of   *Executor
	host *conf.Resolved
}

func (k *commanded) Algorithms(ctx context.Context, name string, port int, preference []string) ([]string, error) {
	x, err := k.ask(ctx, "ORDER", knownhosts.HostPort(name, port), nil)
	if err != nil {
		return nil, err
	}
	return check.Algorithms(x, name, port, preference), nil
}

func (k *commanded) Check(ctx context.Context, name string, port int, remote net.Addr, key ssh.PublicKey) error {
	x, err := k.ask(ctx, "HOSTNAME", knownhosts.HostPort(name, port), key)
	if err != nil {
		return err
	}
	err = k.decide(x, name, port, remote, key)
	if v, _ := errors.AsType[*check.Verdict](err); v != nil && v.Kind == check.Changed && v.Lines[0].File == toldBy {
		err.(*dial.Error).Hint = check.ChangedHint
	}
	return err
}

const (
	// toldBy stands for a file in messages about a key that a KnownHostsCommand printed.
	toldBy = "KnownHostsCommand"
	// mostTold is far more than the keys of one host.
	mostTold = 64 << 20
)

// ask adds to the files the keys that the command prints for a name
// (sshconnect.c:load_hostkeys_command). key is nil before the server has shown it. As with ssh, a
// missing program knows no key, and one that fails ends the login.
func (k *commanded) ask(ctx context.Context, reason, name string, key ssh.PublicKey) (*index.Index, error) {
	argv, err := k.host.KnownHostsCommand(keyTokens(reason, name, k.host.FingerprintHash(), key))
	if err != nil {
		return nil, unasked(err)
	}
	if why := unusable(argv); why != "" {
		k.of.passedOver.Do(func() { k.of.params.Warn("KnownHostsCommand " + why + ": it is passed over") })
		return k.index, nil
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	stderr := k.of.params.CleanStderr()
	defer stderr.Close()
	cmd.Stderr = stderr
	text, err := proc.Answer(cmd, mostTold)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, fleet.ErrConnectTimeout):
		err = cause
	case cause != nil:
		return nil, cause
	}
	if err != nil {
		return nil, unasked(fmt.Errorf("%s: %w", argv[0], err))
	}
	return k.index.With(toldBy, name, text), nil
}

// unusable returns the reason for which ssh does not start a command, "" if there is none.
func unusable(argv []string) string {
	switch {
	case len(argv) == 0:
		return "names no program"
	case !filepath.IsAbs(argv[0]):
		return argv[0] + " is not an absolute path"
	}
	if _, err := os.Stat(argv[0]); err != nil {
		return err.Error()
	}
	return ""
}

// unasked returns the error of a login whose KnownHostsCommand failed.
func unasked(err error) *dial.Error {
	return &dial.Error{
		Class: fleet.HostKeyUnknown, Text: "KnownHostsCommand failed: " + err.Error(), Err: err, SlowDown: fleet.Exhausted(err),
		Hint: "run it by hand: it must end with status 0, whether it knows a key or not",
	}
}

// keyTokens expands the tokens that only a KnownHostsCommand has: it returns their values, and
// false for others.
func keyTokens(reason, name, hash string, key ssh.PublicKey) func(byte) (string, bool) {
	texts := map[byte]string{'H': name, 'I': reason, 't': "NONE", 'f': "NONE", 'K': "NONE"}
	if key != nil {
		texts['t'], texts['f'], texts['K'] = key.Type(), fingerprint(hash, key), base64.StdEncoding.EncodeToString(key.Marshal())
	}
	return func(t byte) (text string, ok bool) { text, ok = texts[t]; return text, ok }
}

// fingerprint returns a key's fingerprint as ssh prints it under FingerprintHash. A certificate has
// that of the key inside.
func fingerprint(hash string, key ssh.PublicKey) string {
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key
	}
	if strings.EqualFold(hash, "md5") {
		return "MD5:" + ssh.FingerprintLegacyMD5(key)
	}
	return ssh.FingerprintSHA256(key)
}

func askForKey(path string) string { return "Enter passphrase for key '" + termsafe.Line(path) + "': " }

// Askpass returns the source of a key's passphrase: the one asked for at the start, a person, or
// the user's program (ssh(1) SSH_ASKPASS, SSH_ASKPASS_REQUIRE); nil is none.
func Askpass(p Params) func(context.Context, string) ([]byte, error) {
	if p.Password != nil {
		return func(context.Context, string) ([]byte, error) { return []byte(p.Password.Text()), nil }
	}
	program := p.Getenv("SSH_ASKPASS")
	require := p.Getenv("SSH_ASKPASS_REQUIRE")
	display := p.Getenv("DISPLAY") != "" || p.Getenv("WAYLAND_DISPLAY") != ""
	wanted := require == "force" || require == "prefer" && display
	switch {
	case p.Person != nil && (program == "" || !wanted):
		return func(ctx context.Context, path string) ([]byte, error) {
			text, err := p.Person.Ask(ctx, askForKey(path), true)
			return []byte(text), err
		}
	case program == "" || require == "never" || (!display && require != "force"):
		return nil
	}
	return func(ctx context.Context, path string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, program, askForKey(path))
		cmd.WaitDelay = proc.Grace
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("SSH_ASKPASS %s: %w", program, err)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		if line == "" {
			return nil, errors.New("no passphrase was given")
		}
		return []byte(strings.TrimSuffix(line, "\r")), nil
	}
}
