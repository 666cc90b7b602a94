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

// Keep begins the record of a run; a nil store keeps none. A history that cannot be written causes
// a warning and does not stop the command.
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
