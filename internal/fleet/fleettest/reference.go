// Package fleettest is one suite for all engines (fleet.Executor), with the servers that it
// needs, hostile ones among them, and the word of other programs on sets of hosts.
package fleettest

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"
)

// Ask gives questions to testdata/reference.py, which needs a package of Debian, and
// returns its answers, one for each.
func Ask[A, Q any](t *testing.T, debian string, questions []Q) (answers []A) {
	t.Helper()
	var in, out, stderr bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, q := range questions {
		if err := enc.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/usr/bin/python3", "testdata/reference.py")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("reference.py: %v\n%sinstall the package %s", err, stderr.String(), debian)
	}
	for dec := json.NewDecoder(&out); dec.More(); {
		var a A
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions", len(answers), len(questions))
	}
	return answers
}
