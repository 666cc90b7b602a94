// Package openssh knows the installed OpenSSH: where its programs are, their abilities, how they
// reach a host (Destination), and their messages: a line of ssh's log is an Event, and lines have a
// Cause where ssh gave up, in the words of OpenSSH 6 to 10. It does not know what a cause means to
// others.
package openssh

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/sys/proc"
)

// Program is an installed program of OpenSSH.
type Program struct {
	Path    string // absolute: sshd insists on it, and results record it
	Version string // such as "OpenSSH_9.2p1 Debian-2+deb12u6"
	Crypto  string // such as "OpenSSL 3.0.19 27 Jan 2026"

	lacks   []string // ssh: options of ours that it does not know
	answers *answers
}

// NotFoundError says that a program is not installed.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string { return e.Name + " is not installed" }

// Remedies for a missing or unusable ssh or sshd.
const (
	InstallClient = "install openssh-client, or name its path with --ssh"
	InstallServer = "install openssh-server, or name its path with --sshd"
)

// Installed finds the installed ssh, for questions about it.
func Installed(ctx context.Context) (Program, error) {
	p, err := find(ctx, "ssh", "")
	return p, fault.WithHint(err, InstallClient)
}

// FindClient finds ssh, or checks the user's path. An error suggests a remedy.
func FindClient(ctx context.Context, given string) (Program, error) {
	p, err := find(ctx, "ssh", given)
	if err == nil {
		err = p.learn(ctx)
	}
	return p, fault.WithHint(err, InstallClient)
}

// FindServer finds sshd, or checks the user's path. An error suggests a remedy.
func FindServer(ctx context.Context, given string) (Program, error) {
	p, err := find(ctx, "sshd", given)
	return p, fault.WithHint(err, InstallServer)
}

func find(ctx context.Context, name, given string) (Program, error) {
	path, err := locate(name, given)
	if err != nil {
		return Program{}, err
	}
	p := Program{Path: path, answers: newAnswers(path)}
	p.Version, p.Crypto, err = p.version(ctx)
	return p, err
}

func locate(name, given string) (string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		if err != nil {
			return "", fault.Usage("", "%s: %s", given, errors.Unwrap(err))
		}
		return filepath.Abs(path)
	}
	if path := proc.Find(name); path != "" {
		return filepath.Abs(path)
	}
	return "", &NotFoundError{name}
}

// Itself asks the program about itself: the answer depends on no configuration, and is asked for
// once.
func (p Program) Itself(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
	a, err := p.answers.to(ctx, args)
	if err == nil && a.Exit != 0 {
		err = exited(a.Exit)
	}
	return a.Out, a.Err, err
}

// versionArgs make a program identify itself. sshd knows -V since 9.2; before, its usage text for
// the unknown option contains the version.
var versionArgs = []string{"-V"}

func (p Program) version(ctx context.Context) (version, crypto string, err error) {
	stdout, stderr, err := p.Itself(ctx, versionArgs...)
	if version, crypto, ok := findVersion(string(stdout) + string(stderr)); ok {
		return version, crypto, nil
	}
	if err == nil {
		err = errors.New("its answer names no OpenSSH version")
	}
	return "", "", fmt.Errorf("%s -V: %w", p.Path, err)
}

// findVersion looks for the line that versionLine reads.
func findVersion(text string) (version, crypto string, ok bool) {
	for line := range strings.Lines(text) {
		if version, crypto, ok = versionLine(strings.TrimSpace(line)); ok {
			break
		}
	}
	return version, crypto, ok
}

// versionLine reads "OpenSSH_9.2p1 Debian-2, OpenSSL 3.0.19 27 Jan 2026". Forks have names of their
// own that end in SSH, such as Sun_SSH_1.1.
func versionLine(line string) (version, crypto string, ok bool) {
	version, crypto, ok = strings.Cut(line, ",")
	name, _, found := strings.Cut(version, "SSH_")
	if !ok || !found || strings.ContainsAny(name, " \t:") {
		return "", "", false
	}
	return strings.TrimSpace(version), strings.TrimSpace(crypto), true
}

// queries maps kinds to the names of `ssh -Q` (ssh(1)).
var queries = []struct {
	kind alg.Kind
	name string
}{{alg.Cipher, "cipher"}, {alg.MAC, "mac"}, {alg.Kex, "kex"}, {alg.HostKey, "key"}}

// Query asks the client for the algorithms that it was built with.
func (p Program) Query(ctx context.Context) (alg.Offer, error) {
	lists := map[alg.Kind][]string{}
	for _, query := range queries {
		output, _, err := p.Itself(ctx, "-Q", query.name)
		if err != nil {
			return alg.Offer{}, fmt.Errorf("%s -Q %s: %w", p.Path, query.name, err)
		}
		lists[query.kind] = strings.Fields(string(output))
	}
	return alg.Offer{Ciphers: lists[alg.Cipher], MACs: lists[alg.MAC], Kex: lists[alg.Kex], HostKeys: lists[alg.HostKey]}, nil
}
