package cli

import (
	"bytes"
	"io"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/remotesh"
	"sshpace/internal/sys/file"
)

// scriptCommand sends a local script, so that nothing is left on the hosts. Its first line selects
// the interpreter; without one, sh. stdin is the script's own input; nil for none.
func scriptCommand(name string, args []string, stdin io.Reader) (fleet.Command, error) {
	data, err := file.ReadFile(name, file.Config)
	if err != nil {
		return fleet.Command{}, &Error{Err: err, Hint: "give a readable script to --script", Code: ExitUsage}
	}
	program, err := remotesh.Script(data, args)
	if err != nil {
		return fleet.Command{}, usageError("give a text that an interpreter on the hosts reads to --script", "%s: %s", name, err)
	}
	line, input := remotesh.Command(program)
	if stdin == nil {
		return fleet.Command{Line: line, Input: fleet.SpoolBytes(input)}, nil
	}
	return fleet.Command{Line: line, Input: fleet.NewSpool(io.MultiReader(bytes.NewReader(input), stdin))}, nil
}
