package programs

import (
	"os"

	"sshpace/internal/bench/helper"
	"sshpace/internal/programs/oldserver"
	"sshpace/internal/ssh/wire"
)

// Helpers are the helper programs that only measurements of programs start.
var Helpers = helper.Programs{"old-server": helper.Taking(3, func(args []string) error {
	hostKey, authorized, err := wire.ReadKeys(args[0], args[1])
	if err != nil {
		return err
	}
	return oldserver.ServeOne(os.Stdin, hostKey, authorized, args[2])
})}
