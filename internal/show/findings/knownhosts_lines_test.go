package findings_test

import (
	"bytes"
	"strings"
	"testing"

	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/knownhosts/tidy"
)

// Thousands of findings are folded by kind, with examples and counts; few, and all where all are
// wanted, have a line each.
func TestManyFindingsAreFolded(t *testing.T) {
	lint := func(duplicates int, all bool) []string {
		found := []tidy.Finding{{File: "/k", Line: 1, Kind: "conflict", Detail: "another key"}}
		for i := range duplicates {
			found = append(found, tidy.Finding{File: "/k", Line: 2 + i, Kind: "duplicate", Detail: "an earlier line says so", Other: "/k:1"})
		}
		var out bytes.Buffer
		if err := findings.Findings(&out, found, false, all); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	if got := lint(8763, false); len(got) != 5 || got[0] != "/k:1: conflict: another key" || got[4] != "duplicate: 8760 more like these; --all shows them" {
		t.Errorf("%q", got)
	}
	if got := lint(8763, true); len(got) != 8764 {
		t.Errorf("--all: %d lines", len(got))
	}
	if got := lint(12, false); len(got) != 13 {
		t.Errorf("%q", got)
	}
}
