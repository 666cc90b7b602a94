package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/remotesh"
)

// maxScript bounds a local script; it is held in memory.
const maxScript = 16 << 20

// scriptCommand sends a local script, so that nothing is left on the hosts. Its
// first line decides what runs it; without one, sh. stdin is the script's own
// input; nil for none.
func scriptCommand(file string, args []string, stdin io.Reader) (fleet.Command, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxScript {
		err = fmt.Errorf("script %s is larger than %d bytes", file, maxScript)
	}
	if err != nil {
		return fleet.Command{}, &Error{Err: err, Hint: "give a readable script to --script", Code: ExitUsage}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fleet.Command{}, &Error{Err: err, Hint: "give a readable script to --script", Code: ExitUsage}
	}
	program, err := remotesh.Script(data, args)
	if err != nil {
		return fleet.Command{}, usageError("give a text that an interpreter on the hosts reads to --script", "%s: %s", file, err)
	}
	line, input := remotesh.Command(program)
	if stdin == nil {
		return fleet.Command{Line: line, Input: fleet.SpoolBytes(input)}, nil
	}
	return fleet.Command{Line: line, Input: fleet.NewSpool(io.MultiReader(bytes.NewReader(input), stdin))}, nil
}
