package login

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/record"
	"sshpace/internal/record/anonymize"
)

// TestRecordsTellTheSame: what was measured and what its records say is one, and
// an anonymous copy still says which logins were compared.
func TestRecordsTellTheSame(t *testing.T) {
	e, plain := pair(t)
	file := &record.File{Trials: map[int]record.Trial{}}
	with := func(option string) ArgvFunc {
		return func(log string) []string { return slices.Insert(plain.Argv(log), 1, "-o", option) }
	}
	cases := []Case{plain, {Factor: SourceFactor, Level: "agent, 8 keys, the last one is right", Argv: with("AddKeysToAgent=no")}, {Factor: HostKeyFactor, Level: "rsa-sha2-512", Argv: with("CheckHostIP=no")}}
	want, err := e.Survey(context.Background(), cases, Plan{Rounds: 2, Note: file.Sink(), RoundTrips: 9, Conditions: "without waits for acknowledgements, with curve25519-sha256 unless key exchanges are"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, resultsIn(file)); diff != "" {
		t.Errorf("(-measured +recorded)\n%s", diff)
	}
	if k := file.LoginKinds; len(k) != 3 || k[0].RoundTrips != 9 || k[1].RoundTrips != 0 || len(file.LoginRuns) != 6 {
		t.Errorf("%+v and %d logins", k, len(file.LoginRuns))
	}
	if diff := cmp.Diff(file.LoginKinds, anonymize.File(file).LoginKinds); diff != "" {
		t.Errorf("anonymous (-was +is)\n%s", diff)
	}
	if diff := cmp.Diff(want, resultsIn(anonymize.File(file))); diff != "" {
		t.Errorf("anonymous (-was +is)\n%s", diff)
	}
}

func resultsIn(file *record.File) []Result {
	results, _ := Results(file)
	return results
}
