package login

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/sched"
	"sshpace/internal/bench/rounds"
	"sshpace/internal/record/anonymize"
)

// TestRecordsTellTheSame: an anonymous copy of what was measured still says which logins were
// compared, and what they showed.
func TestRecordsTellTheSame(t *testing.T) {
	e, plain := pair(t)
	with := func(option string) ArgvFunc {
		return func(log string) []string { return slices.Insert(plain.Argv(log), 1, "-o", option) }
	}
	cases := []Case{plain, {Factor: SourceFactor, Level: "agent, 8 keys, the last one is right", Argv: with("AddKeysToAgent=no")}, {Factor: HostKeyFactor, Level: "rsa-sha2-512", Argv: with("CheckHostIP=no")}}
	want, file, err := surveyed(e, cases, Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 2}}, RoundTrips: 9, Conditions: "without waits for acknowledgements, and with curve25519-sha256 except to compare key exchanges"})
	if err != nil {
		t.Fatal(err)
	}
	if k := file.Subjects; len(k) != 3 || k[0].RoundTrips != 9 || k[1].RoundTrips != 0 || len(file.Readings) != 6 {
		t.Errorf("%+v and %d logins", k, len(file.Readings))
	}
	if diff := cmp.Diff(file.Subjects, anonymize.File(file).Subjects); diff != "" {
		t.Errorf("anonymous (-was +is)\n%s", diff)
	}
	results, _ := Results(anonymize.File(file))
	if diff := cmp.Diff(want, results); diff != "" {
		t.Errorf("anonymous (-was +is)\n%s", diff)
	}
}
