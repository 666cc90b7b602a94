package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"sshpace/internal/base/sched"
)

// ErrNobody says that there is no terminal to ask on.
var ErrNobody = errors.New("there is no terminal to ask on")

// CanAsk reports whether the process has a terminal.
func CanAsk() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	return term.IsTerminal(int(tty.Fd()))
}

// Ask asks for one line on the terminal of the process, independently of standard input and output;
// secret hides the typed text. It returns ctx's cause when that ends first, with the terminal
// restored.
func Ask(ctx context.Context, question string, secret bool) (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", ErrNobody
	}
	defer tty.Close()
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", ErrNobody
	}
	defer term.Restore(fd, before)
	if _, err := io.WriteString(tty, question); err != nil {
		return "", err
	}
	text, err := sched.Await(ctx, func() (string, error) { return readLine(tty, fd, secret) })
	if secret || ctx.Err() != nil {
		fmt.Fprintln(tty)
	}
	return text, err
}

func readLine(tty *os.File, fd int, secret bool) (string, error) {
	if secret {
		text, err := term.ReadPassword(fd)
		return string(text), err
	}
	text, err := bufio.NewReader(tty).ReadString('\n')
	if err == io.EOF {
		err = nil
	}
	return strings.TrimSpace(text), err
}

// Confirm asks a question; only "y" and "yes" mean yes.
func Confirm(ctx context.Context, question string) (bool, error) {
	text, err := Ask(ctx, question+" [y/N] ", false)
	text = strings.ToLower(text)
	return text == "y" || text == "yes", err
}
