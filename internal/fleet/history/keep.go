package history

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// keepRuns is how many runs the history keeps.
const keepRuns = 200

// Kept is the record of a run, if one is kept.
type Kept struct {
	recorder *Recorder
	warn     io.Writer
}

// Keep begins the record of a run; a store that is nil keeps none. A history that
// cannot be written is told about and does not keep the command from running.
func Keep(s *Store, how output.How, warn io.Writer) Kept {
	if s == nil {
		return Kept{}
	}
	if err := s.prune(keepRuns); err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(warn, "sshpace: warning: history: %s\n", termsafe.OneLine(err.Error()))
	}
	r, err := s.start(time.Now(), how)
	if err != nil {
		fmt.Fprintf(warn, "sshpace: warning: this run is not recorded: %s\n", termsafe.OneLine(err.Error()))
	}
	return Kept{r, warn}
}

// ID names the run; "" if it is not recorded.
func (k Kept) ID() string {
	if k.recorder == nil {
		return ""
	}
	return k.recorder.ID
}

// Beside is the sink and the record, which is told last, so that it knows what was lost.
func (k Kept) Beside(sink fleet.Sink) fleet.Sink {
	if k.recorder == nil {
		return sink
	}
	return output.Tee{sink, k.recorder}
}

// Close ends the record, and tells where it is incomplete.
func (k Kept) Close() {
	if k.recorder == nil {
		return
	}
	if err := k.recorder.Close(); err != nil {
		fmt.Fprintf(k.warn, "sshpace: warning: the record of this run is incomplete: %s\n", termsafe.OneLine(err.Error()))
	}
}
