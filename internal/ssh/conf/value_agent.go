package conf

import (
	"fmt"
	"strings"

	"sshpace/internal/base/wildcard"
)

// parseForwardAgent reads yes, no, or the path of an agent socket, which is returned after the word
// "path".
func parseForwardAgent(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	if flag, err := parseChoice(in, yesNo); err == nil {
		return flag, nil
	}
	return []string{"path", arg}, checkAgentPath(arg, in.env)
}

func parseIdentityAgent(in input) ([]string, error) {
	arg, err := in.single()
	if err != nil {
		return nil, err
	}
	return []string{arg}, checkAgentPath(arg, in.env)
}

// checkAgentPath checks the two forms of environment variables in a path.
func checkAgentPath(path string, env func(string) (string, bool)) error {
	if _, err := expand(path, nil, env); err != nil {
		return err
	}
	name, legacy := strings.CutPrefix(path, "$")
	if legacy && !strings.HasPrefix(name, "{") && !validEnvName(name) {
		return fmt.Errorf("invalid environment name %s", path)
	}
	return nil
}

func validEnvName(name string) bool {
	for i := range len(name) {
		if c := wildcard.Lower(name[i : i+1])[0]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
