package history

import (
	"fmt"
	"io"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet/output"
)

// keepRuns is how many runs the history keeps, and keepBytes how much of them if output is kept.
const (
	keepRuns  = 200
	keepBytes = 4 << 30
)

// Keep begins the record of a run; a nil store keeps none. A history that cannot be written causes
// a warning and does not stop the command, unless that is detached: then nobody would see it.
func Keep(s *Store, how output.How, warn io.Writer) (*Recorder, error) {
	if s == nil {
		return &Recorder{}, nil
	}
	r, err := s.start(time.Now(), how)
	switch {
	case err == nil:
		return r, nil
	case how.Detached != nil:
		return nil, err
	}
	fmt.Fprintf(warn, "sshpace: warning: this run is not recorded: %s\n", termsafe.OneLine(err.Error()))
	return &Recorder{}, nil
}
