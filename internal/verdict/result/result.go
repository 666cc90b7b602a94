// Package result leads from files to rankings.
package result

import (
	"errors"
	"fmt"

	"sshpace/internal/base/fault"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/verdict/rank"
)

// File reads and ranks one record file.
func File(path string, by rank.By) (*rank.Ranking, error) {
	records, err := Load(path, func(f *record.File) *record.File { return f })
	if err != nil {
		return nil, err
	}
	return Of(path, records, by)
}

// Load reads one record file and changes it.
func Load(path string, change func(*record.File) *record.File) (*record.File, error) {
	records, err := store.Load(path)
	if err != nil {
		return nil, err
	}
	return change(records), nil
}

// Of ranks what a file holds.
func Of(path string, records *record.File, by rank.By) (*rank.Ranking, error) {
	r, err := rank.Of(records, rank.Options{By: by})
	if errors.Is(err, rank.ErrNoSamples) && len(records.LoginKinds)+len(records.Ways) > 0 {
		return nil, fault.Usage("measure with sshpace bench", "%s ranks no cipher", path)
	}
	if errors.Is(err, rank.ErrNoSamples) {
		return nil, fault.WithHint(fmt.Errorf("%s: %w", path, err), "run it again, or go on with sshpace bench --resume "+path)
	}
	return r, err
}

// Ceilings relates a ranking to the limits of its machine: those in the
// named file, or the newest ones of a machine with the same processor.
func Ceilings(results store.Store, r *rank.Ranking, path string, change func(*record.File) *record.File) error {
	file := results.Limits(r.Environment, change)
	if path != "" {
		var err error
		if file, err = store.LoadLimits(path); err != nil {
			return err
		}
		file = change(file)
	}
	if file != nil {
		r.Ceilings = rank.CeilingsOf(r, file)
	}
	return nil
}
