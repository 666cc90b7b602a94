package openssh

import (
	"fmt"
	"strconv"
	"strings"

	"sshpace/internal/base/shell"
)

// Jump is one jump host on the way of an ssh to its destination. User and Host
// are checked already: they hold nothing that means something to a shell.
type Jump struct {
	User      string // "" = what the configuration says
	Host      string
	Port      int  // 0 = what the configuration says
	AcceptNew bool // trust and record the key of this host if none is known yet
}

// HostKeyOptions decide about host keys, whatever the user's options and files
// say: never below strict, and new keys only where they are asked for. The
// first value of an option wins in ssh, so they stand before all others.
func HostKeyOptions(acceptNew bool) []string {
	strict := "yes"
	if acceptNew {
		strict = "accept-new"
	}
	return []string{"-o", "StrictHostKeyChecking=" + strict, "-o", "NoHostAuthenticationForLocalhost=no"}
}

// JumpOptions make ssh go through jump hosts, given in the order in which they
// are connected to, as its -J would. But that starts an ssh for each of them
// under what their configuration says about host keys alone, and asks a person
// if there is a terminal. options are handed to each of them (-F FILE).
//
// The command for each jump host but the last is handed to the one behind it in
// a variable of env, so that no text is quoted more than once.
func JumpOptions(ssh string, jumps []Jump, options []string) (argv, env []string) {
	if len(jumps) == 0 {
		return nil, nil
	}
	variable := func(i int) string { return fmt.Sprintf("SSHPACE_JUMP_%d", i) }
	var command string
	for i, jump := range jumps {
		before := ""
		if i > 0 {
			env = append(env, variable(i-1)+"="+command)
			before = ` -o "ProxyCommand=$` + variable(i-1) + `"`
		}
		command = jumpCommand(ssh, jump, options) + before + " -W '[%h]:%p' -- " + jump.Host
	}
	return []string{"-o", "ProxyCommand=" + command}, env
}

// jumpCommand is the beginning of the command for one jump host, for a shell
// and behind ssh's own expansion of tokens.
func jumpCommand(ssh string, jump Jump, options []string) string {
	argv := append([]string{ssh}, HostKeyOptions(jump.AcceptNew)...)
	argv = append(argv, "-o", "BatchMode=yes", "-o", "UpdateHostKeys=no")
	argv = append(argv, options...)
	if jump.User != "" {
		argv = append(argv, "-l", jump.User)
	}
	if jump.Port != 0 {
		argv = append(argv, "-p", strconv.Itoa(jump.Port))
	}
	var words []string
	for _, word := range argv {
		words = append(words, strings.ReplaceAll(shell.Quote(word), "%", "%%"))
	}
	return strings.Join(words, " ")
}
