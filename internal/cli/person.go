package cli

import (
	"context"
	"io"

	"sshpace/internal/ssh/dial"
	"sshpace/internal/sys/terminal"
)

// person answers hosts on the terminal, with nothing else drawn there; nil if there is none.
func person(sys System) *dial.Person {
	if !terminal.CanAsk() {
		return nil
	}
	screen := sys.screen()
	ask := func(ctx context.Context, text string, secret bool) (answer string, err error) {
		screen.Aside(func() { answer, err = terminal.Ask(ctx, text, secret) })
		return answer, err
	}
	return dial.NewPerson(ask, func(text string) { _, _ = io.WriteString(screen, text) })
}
