package cli

import (
	"context"
	"io"
	"os"

	"sshpace/internal/bench/helper"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/terminal"
)

// person answers hosts on the terminal, with nothing else drawn there; nil if there is none.
func person(sys System) *dial.Person {
	if !terminal.CanAsk() {
		return nil
	}
	screen := sys.screen()
	return dial.NewPerson(screen.Aside, terminal.Ask, func(text string) { _, _ = io.WriteString(screen, text) })
}

// keyHolder is the helper program that holds private keys in the place of a process that lives
// long.
const keyHolder = "keys"

func (sys System) holdKeys() func(context.Context, []string) (int, error) {
	return helper.Taking(0, func([]string) error {
		proc.IgnoreSignals() // it ends with its input
		if _, err := proc.Protect(); err != nil {
			return err
		}
		asks := reach.Askpass(reach.Params{Params: route.Params{Getenv: sys.Getenv}, Person: person(sys)})
		return dial.HoldKeys(context.Background(), os.Stdin, os.Stdout, asks)
	})
}
