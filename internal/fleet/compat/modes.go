package compat

import (
	"context"
	"path/filepath"
	"strings"
)

// Main is a drop-in mode: a whole program under another name.
type Main func(ctx context.Context, env Env, args []string) int

// Mode is the mode for a program name, nil for our own.
func Mode(program string) Main {
	name := filepath.Base(program)
	if mode := modes[name]; mode != nil {
		return mode
	}
	for _, beginning := range []string{"parallel-", "p"} { // as Debian calls them, and as their authors do
		tool, ok := strings.CutPrefix(name, beginning)
		if _, known := psshTools[tool]; ok && known {
			return func(ctx context.Context, env Env, args []string) int {
				return PsshMain(ctx, env, tool, name, args)
			}
		}
	}
	return nil
}

var modes = map[string]Main{"pdsh": PdshMain, "dshbak": DshbakMain, "mpssh": MpsshMain, "mpssh.py": PyMain}

// Names are the programs that there are modes for.
var Names = []string{"pssh", "pscp", "pslurp", "pnuke", "pdsh", "dshbak", "mpssh", "mpssh.py"}
