package reach

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"sshpace/internal/ssh/dial"
	"sshpace/internal/sys/proc"
)

// askpass returns the source of a key's passphrase: the one asked for at the start, or the user's
// program (ssh(1) SSH_ASKPASS, SSH_ASKPASS_REQUIRE); nil is none.
func askpass(getenv func(string) string, asked dial.Password) func(context.Context, string) ([]byte, error) {
	if asked != nil {
		return func(context.Context, string) ([]byte, error) { return []byte(asked.Text()), nil }
	}
	program := getenv("SSH_ASKPASS")
	require := getenv("SSH_ASKPASS_REQUIRE")
	display := getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""
	if program == "" || require == "never" || (!display && require != "force") {
		return nil
	}
	return func(ctx context.Context, path string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, program, "Enter passphrase for key '"+path+"': ")
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
