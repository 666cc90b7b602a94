package compare

import (
	"errors"
	"fmt"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/record/store"

	"sshpace/internal/bench/rank"
)

// RankFile reads and ranks one record file.
func RankFile(path string, by rank.By) (*rank.Ranking, error) {
	records, err := store.Load(path)
	if err != nil {
		return nil, err
	}
	return RankRecords(path, records, by)
}

// RankRecords ranks the records of a file.
func RankRecords(path string, records *record.File, by rank.By) (*rank.Ranking, error) {
	r, err := rank.Of(records, by)
	if errors.Is(err, rank.ErrNoSamples) && len(records.Subjects) > 0 {
		return nil, fault.Usage("measure with sshpace bench", "%s contains no cipher ranking", path)
	}
	if errors.Is(err, rank.ErrNoSamples) {
		return nil, fault.WithHint(fmt.Errorf("%s: %w", path, err), "run it again, or continue with sshpace bench --resume "+shell.Word(path))
	}
	if errors.Is(err, rank.ErrTooMany) {
		return nil, fault.WithHint(fmt.Errorf("%s: %w", path, err), "measure with sshpace bench")
	}
	return r, err
}

// CeilingsOf compares a ranking with the limits of its machine: those in the named file, or the
// newest ones of a machine with the same processor; nil without any.
func CeilingsOf(results store.Store, r *rank.Ranking, path string, change func(*record.File) *record.File) (*Ceilings, error) {
	file := results.Limits(r.Environment, change)
	if path != "" {
		var err error
		if file, err = store.LoadLimits(path); err != nil {
			return nil, err
		}
		file = change(file)
	}
	if file == nil {
		return nil, nil
	}
	return ceilingsOf(r, file), nil
}
