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

// question is on the terminal alone, and other hosts go on meanwhile: what is written shows later.
type question struct{}

func (question) Written([]byte)  {}
func (question) Aside(do func()) { do() }

// alone does something while it alone is on the terminal, such as asking, and all others go on.
func (sys System) alone(do func()) {
	screen := sys.screen()
	screen.Cover(question{})
	defer screen.Cover(nil)
	do()
}

// show shows a text to people.
func (sys System) show(text string) { _, _ = io.WriteString(sys.screen(), text) }

// person answers hosts on the terminal; nil if there is none.
func person(sys System) *dial.Person {
	if !terminal.CanAsk() {
		return nil
	}
	return dial.NewPerson(sys.alone, terminal.Ask, sys.show)
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
