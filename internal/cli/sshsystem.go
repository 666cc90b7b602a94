package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"

	"sshpace/internal/sshconf"
)

// sshSystem is what the resolver of ssh_config takes from this machine.
func sshSystem(getenv func(string) string) (sshconf.System, error) {
	me, err := user.Current()
	if err != nil {
		return sshconf.System{}, fmt.Errorf("who am I: %w", err)
	}
	uid, err := strconv.Atoi(me.Uid)
	if err != nil {
		return sshconf.System{}, fmt.Errorf("user id %q: %w", me.Uid, err)
	}
	name, _ := os.Hostname() // "" as ssh's gethostname on failure
	home := me.HomeDir
	matches := &matchExec{shell: shellOf(getenv), known: make(map[string]func() bool)}
	return sshconf.System{
		Home: home, User: me.Username, UID: uid, Hostname: name,
		Getenv: func(k string) (string, bool) { v := getenv(k); return v, v != "" },
		Exec:   func(ctx context.Context, command string) (bool, error) { return matches.run(ctx, command), nil },
		Canonical: func(ctx context.Context, name string) (string, bool) {
			cname, err := net.DefaultResolver.LookupCNAME(ctx, name)
			return cname, err == nil
		},
		Addresses: localAddresses,
	}, nil
}

func shellOf(getenv func(string) string) string {
	if shell := getenv("SHELL"); shell != "" {
		return shell
	}
	return "/bin/sh"
}

// matchExec answers "Match exec", each command once per run.
type matchExec struct {
	shell string

	mu    sync.Mutex
	known map[string]func() bool
}

func (m *matchExec) run(ctx context.Context, command string) bool {
	m.mu.Lock()
	answer := m.known[command]
	if answer == nil {
		answer = sync.OnceValue(func() bool {
			return exec.CommandContext(context.WithoutCancel(ctx), m.shell, "-c", command).Run() == nil
		})
		m.known[command] = answer
	}
	m.mu.Unlock()
	return answer()
}

func localAddresses() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr())
		}
	}
	return out
}

// runSSH runs the installed ssh to ask it something.
func runSSH(ctx context.Context, args ...string) (stdout, stderr []byte, err error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "ssh", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.Bytes(), errs.Bytes(), err
}

// askpass returns how to ask for a passphrase without a terminal, nil when the
// user has not set it up (ssh(1) SSH_ASKPASS, SSH_ASKPASS_REQUIRE).
func askpass(getenv func(string) string) func(context.Context, string) ([]byte, error) {
	program := getenv("SSH_ASKPASS")
	require := getenv("SSH_ASKPASS_REQUIRE")
	display := getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""
	if program == "" || require == "never" || (!display && require != "force") {
		return nil
	}
	return func(ctx context.Context, path string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, program, "Enter passphrase for key '"+path+"': ")
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
