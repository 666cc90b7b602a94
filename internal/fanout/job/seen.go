package job

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sshpace/internal/sys/journal"
	"sshpace/internal/sys/safedir"
)

// seen is a file of a launcher's own, which has the hosts of a job that it has started: the hub may
// offer a batch again, and have no journal of it any more.
type seen struct {
	mu      sync.Mutex
	file    *os.File
	batches map[int]Bits
}

// seenLine is a line of it.
type seenLine struct {
	Batch   int  `json:"batch"`
	Started Bits `json:"started"`
}

// seenFor is how long the file is kept after the expiry of its job: clocks are set back at times.
const seenFor = 24 * time.Hour

// openSeen opens the file of a job, whose name begins with the expiry, and removes those of jobs
// that have expired.
func openSeen(dir *safedir.Directory, v *Verified, now time.Time) (*seen, error) {
	names, err := dir.Names(journal.Ending)
	if err != nil {
		return nil, err
	}
	old, _ := slices.BinarySearch(names, journal.Name(now.Add(-seenFor), ""))
	for _, name := range names[:old] {
		if err := dir.Remove(name); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(dir.Path(), journal.Name(v.Expires, "-"+Token(v.ID)))
	f, err := journal.Resume(path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = journal.New(path)
	}
	if err != nil {
		return nil, err
	}
	s := &seen{file: f, batches: map[int]Bits{}}
	if err = s.read(); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

func (s *seen) read() error {
	cut := false
	for text, err := range journal.Lines(s.file) {
		if cut = errors.Is(err, journal.ErrTruncated); cut {
			break
		}
		var line seenLine
		if err = errors.Join(err, json.Unmarshal(text, &line)); err != nil {
			return err
		}
		b := s.batches[line.Batch]
		b.Join(line.Started)
		s.batches[line.Batch] = b
	}
	return journal.Continue(s.file, cut)
}

// of returns the hosts of a batch that were started.
func (s *seen) of(batch int) Bits {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches[batch])
}

// note notes hosts that start.
func (s *seen) note(batch int, started Bits) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.batches[batch]
	b.Join(started)
	s.batches[batch] = b
	text, err := json.Marshal(seenLine{batch, started})
	if err == nil {
		_, err = s.file.Write(append(text, '\n')) // the hub keeps it, too, so nothing waits for a disk here
	}
	return err
}
