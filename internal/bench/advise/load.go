package advise

import (
	"path/filepath"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/sys/file"
)

// Load finds a policy by name, or reads it from a file.
func Load(name string) (Policy, error) {
	if !strings.HasSuffix(name, ".toml") && !strings.ContainsRune(name, filepath.Separator) {
		return Named(name)
	}
	text, err := file.ReadFile(name, maxPolicy)
	if err != nil {
		return Policy{}, &fault.Error{Err: err, Hint: "name a policy, or a TOML file", Code: fault.Misuse}
	}
	p, err := ParsePolicy(string(text), strings.TrimSuffix(filepath.Base(name), ".toml"))
	if err != nil {
		return p, fault.Usage(`such as: cipher = ["aes256-gcm@openssh.com"]`, "%s: %s", name, err)
	}
	return p, nil
}
