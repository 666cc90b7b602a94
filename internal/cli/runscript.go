package cli

import (
	"bytes"
	"io"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/remotesh"
	"sshpace/internal/sys/file"
)

// readScript reads a local script, and makes the program that runs it on a host. Its first line
// selects the interpreter; without one, sh.
func readScript(name string, args []string) (script []byte, program string, err error) {
	if script, err = file.ReadFile(name, file.Config); err != nil {
		return nil, "", &Error{Err: err, Hint: "give a readable script to --script", Code: ExitUsage}
	}
	if program, err = remotesh.Script(script, args); err != nil {
		err = usageError("give a text that an interpreter on the hosts reads to --script", "%s: %s", name, err)
	}
	return script, program, err
}

// scriptCommand sends a program, so that nothing is left on the hosts. stdin is its own input; nil
// for none.
func scriptCommand(program string, stdin io.Reader) fleet.Command {
	line, input := remotesh.Command(program)
	if stdin == nil {
		return fleet.Command{Line: line, Input: fleet.SpoolBytes(input)}
	}
	return fleet.Command{Line: line, Input: fleet.NewSpool(io.MultiReader(bytes.NewReader(input), stdin))}
}
