package sudo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"sshpace/internal/base/fault"
)

// PasswordFrom is the first line that a command prints, by sh.
func PasswordFrom(ctx context.Context, command string, stderr io.Writer) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = &out, stderr
	cmd.WaitDelay = time.Second // it may have started others, who hold the pipe
	if err := cmd.Run(); err != nil {
		return "", &fault.Error{Err: fmt.Errorf("--password-command: %w", err), Hint: "it must print the password and end with 0", Code: fault.Misuse}
	}
	text, _, _ := strings.Cut(out.String(), "\n")
	if text = strings.TrimSuffix(text, "\r"); text == "" {
		return "", fault.Usage("it must print the password in its first line", "--password-command printed nothing")
	}
	return text, nil
}
