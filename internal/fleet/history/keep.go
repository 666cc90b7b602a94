package history

import (
	"fmt"
	"io"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet/output"
)

// keepRuns is how many runs the history keeps.
const keepRuns = 200

// Keep begins the record of a run; a store that is nil keeps none. A history that
// cannot be written is told about and does not keep the command from running.
func Keep(s *Store, how output.How, warn io.Writer) *Recorder {
	if s == nil {
		return &Recorder{}
	}
	r, err := s.start(time.Now(), how)
	if err != nil {
		fmt.Fprintf(warn, "sshpace: warning: this run is not recorded: %s\n", termsafe.OneLine(err.Error()))
		return &Recorder{}
	}
	return r
}
