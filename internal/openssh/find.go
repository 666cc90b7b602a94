// Package openssh knows the installed OpenSSH: where its programs are, what
// they can do, how to start them for a measurement, and what their debug
// output says.
package openssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"sshpace/internal/alg"
)

// Program is an installed program of OpenSSH.
type Program struct {
	Path    string // absolute: sshd insists on it, and results record it
	Version string // such as "OpenSSH_9.2p1 Debian-2+deb12u6"
	Crypto  string // such as "OpenSSL 3.0.19 27 Jan 2026"
}

// NotFoundError says that a program is not installed.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string { return e.Name + " is not installed" }

// serverDirs are searched after PATH: ordinary users seldom have sshd on it.
var serverDirs = []string{"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/bin", "/opt/homebrew/sbin"}

// FindClient finds ssh, or checks the path that the user gave.
func FindClient(ctx context.Context, given string) (Program, error) { return find(ctx, "ssh", given) }

// FindServer finds sshd, or checks the path that the user gave.
func FindServer(ctx context.Context, given string) (Program, error) { return find(ctx, "sshd", given) }

func find(ctx context.Context, name, given string) (Program, error) {
	path, err := locate(name, given)
	if err != nil {
		return Program{}, err
	}
	p := Program{Path: path}
	p.Version, p.Crypto, err = version(ctx, path)
	return p, err
}

func locate(name, given string) (string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		if err != nil {
			return "", fmt.Errorf("%s: %w", given, errors.Unwrap(err))
		}
		return filepath.Abs(path)
	}
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	for _, dir := range serverDirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return path, nil
		}
	}
	return "", &NotFoundError{name}
}

// versionLine is what `ssh -V` prints, and sshd within its usage text.
var versionLine = regexp.MustCompile(`(?m)^((?:OpenSSH|[A-Za-z]+SSH)_[^,\n]+), *([^\n]*)$`)

// version asks a program who it is. sshd knows -V since 9.2; before, its usage
// text for the unknown option says it.
func version(ctx context.Context, path string) (version, crypto string, err error) {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "-V")
	cmd.Stdout, cmd.Stderr = &output, &output
	runErr := cmd.Run()
	if match := versionLine.FindStringSubmatch(output.String()); match != nil {
		return strings.TrimSpace(match[1]), strings.TrimSpace(match[2]), nil
	}
	if runErr == nil {
		runErr = errors.New("its answer names no OpenSSH version")
	}
	return "", "", fmt.Errorf("%s -V: %w", path, runErr)
}

// queries maps kinds to the names of `ssh -Q` (ssh(1)).
var queries = []struct {
	kind alg.Kind
	name string
}{{alg.Cipher, "cipher"}, {alg.MAC, "mac"}, {alg.Kex, "kex"}, {alg.HostKey, "key"}}

// Query asks the client which algorithms it was built with.
func (p Program) Query(ctx context.Context) (alg.Offer, error) {
	lists := map[alg.Kind][]string{}
	for _, query := range queries {
		output, err := exec.CommandContext(ctx, p.Path, "-Q", query.name).Output()
		if err != nil {
			return alg.Offer{}, fmt.Errorf("%s -Q %s: %w", p.Path, query.name, err)
		}
		lists[query.kind] = strings.Fields(string(output))
	}
	return alg.Offer{Ciphers: lists[alg.Cipher], MACs: lists[alg.MAC], Kex: lists[alg.Kex], HostKeys: lists[alg.HostKey]}, nil
}
