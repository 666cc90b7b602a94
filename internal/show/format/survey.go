package format

import (
	"fmt"

	"sshpace/internal/base/fault"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/findings"
)

// Survey returns the report of a record file with the logins of a fleet, compared with an earlier
// one if before is not nil; all is for text.
func Survey(s store.Store, f, before *record.File, all bool, o Output) Report {
	r := findings.SurveyOf(f, o.Fold, o.Same)
	if before != nil {
		r.Against(before)
	}
	r.Gain = gainOf(s, f)
	return &result{holds: surveys, records: f, output: o, json: r.JSON, document: func() *document.Document { return r.Document(f, all) }}
}

// Earlier loads the survey to compare with; nil for none.
func Earlier(path string) (*record.File, error) {
	if path == "" {
		return nil, nil
	}
	f, err := store.Load(path)
	if err == nil && contentOf(f).name != surveys {
		err = fault.Usage("name a result of sshpace survey", "%s holds no logins of a fleet", path)
	}
	return f, err
}

// gainOf describes the gain of the fastest cipher that all hosts take, by the newest ranking, if
// there is one.
func gainOf(s store.Store, f *record.File) []string {
	shared := findings.Common(f.Hosts)
	path, err := s.NewestRanking()
	if err != nil || len(shared.Ciphers) == 0 {
		return nil
	}
	records, err := store.Load(path)
	if err != nil {
		return nil
	}
	r, err := compare.RankRecords(path, records, rank.Auto)
	if err != nil {
		return nil
	}
	answer := document.AnswerOf(r, advise.Of(r, advise.Options{Shared: shared}), document.Standard)
	said := append([]string{fmt.Sprintf("The fastest of them, measured on %s, so that it is predicted for these hosts:", r.Campaign.Target)}, answer.Says...)
	return append(said, answer.Config...)
}
