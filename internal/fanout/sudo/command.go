package sudo

import (
	"context"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/sys/proc"
)

// mostPrinted is how much of a command's output is read for a password, in bytes.
const mostPrinted = 64 << 10

// PasswordFrom returns the first line that a command prints, by sh.
func PasswordFrom(ctx context.Context, command string, stderr io.Writer) (string, error) {
	out, err := proc.Shell(ctx, command, nil, stderr, mostPrinted)
	if err != nil {
		return "", &fault.Error{Err: fmt.Errorf("--password-command: %w", err), Hint: "it must print the password and end with 0", Code: fault.Misuse}
	}
	text, _, _ := strings.Cut(out, "\n")
	if text = strings.TrimSuffix(text, "\r"); text == "" {
		return "", fault.Usage("it must print the password in its first line", "--password-command printed nothing")
	}
	return text, nil
}
