package copy

import (
	"crypto/rand"
	"fmt"
	"strings"

	"sshpace/internal/base/shell"
	"sshpace/internal/fleet"
)

// conclude returns the outcome of the host, and runs a command there if something has changed.
func (p *put) conclude(then string) error {
	changed := p.copied+p.altered+p.deleted+p.remade > 0 // nothing else runs by now
	switch {
	case then == "":
	case p.failed > 0:
		p.note = "; the command of --then is not run"
	case !changed:
		p.note = "; nothing has changed, and the command of --then is not run"
	case p.Dry:
		p.note = "; then it would run: " + then
	}
	err := p.verdict()
	if err == nil && then != "" && p.note == "" {
		err = p.run(then)
	}
	return err
}

// run runs a command of the user's in the host's sh, and passes on its output and its exit code.
func (p *put) run(command string) error {
	mark := rand.Text()
	said, err := p.shell(query{user: true, program: "exec 3>&1; said=$(sh -c " + shell.Quote(command) + " 2>&1 >&3 3>&- </dev/null); " +
		`printf '%s' "` + mark + `$?;$said"`})
	out, end, ended := strings.Cut(said, mark)
	p.ch.Output(fleet.Stdout, []byte(out))
	exit := 0
	if _, failed := fmt.Sscanf(end, "%d;", &exit); !ended || failed != nil {
		return fmt.Errorf("the copy is complete; whether the command of --then has run is unknown: %w", err)
	}
	if _, end, _ = strings.Cut(end, ";"); end != "" {
		p.ch.Output(fleet.Stderr, []byte(end+"\n"))
	}
	if exit != 0 {
		return &fleet.CommandError{Exit: exit}
	}
	return nil
}
