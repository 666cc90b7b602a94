package cli

import "sshpace/internal/base/unit"

// The values of flags.
type (
	byteLimit = unit.Limit
	percent   = unit.Percent
	seconds   = unit.Duration
)
